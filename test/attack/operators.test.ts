import { expect, test } from "bun:test";
import { newPerson, operator, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { totpCode } from "../console/totp.ts";
import { untilEnd } from "../support/at-end.ts";
import { chatModel } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { withProduct } from "./product.ts";

/** An operator alone, with a password that leaked or with an account of his own, moves no money. */

const upstream = untilEnd(startUpstream());
const SECRETS = { KEY_PEPPER: "p".repeat(64), CONSOLE_SECRET: "s".repeat(64) };
const product = await withProduct({
	models: chatModel({ url: upstream.url }),
	env: { ROLE: "all", NODE_ENV: "production", TOPUP_SECOND_LOOK_USD: "1000", ...SECRETS, ...PERSON_ENV },
});

/** An operator who has set up a second factor. */
async function boss(): Promise<Person & { totp: string }> {
	const person = await operator(product);
	const enabled = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	const totp = new URL(enabled.body.totpURI).searchParams.get("secret") ?? "";
	const confirmed = await person.send("POST", "/api/auth/two-factor/verify-totp", { code: totpCode(totp) });
	if (confirmed.status !== 200) throw new Error(`two-factor: ${confirmed.status} ${JSON.stringify(confirmed.body)}`);
	return { ...person, totp };
}

const customer = await signedUp(product);
const [ann, ben] = [await boss(), await boss()];
const at = (path: string, accountId = customer.accountId) => `/api/console/operator/accounts/${accountId}${path}`;
const adjustment = (usd: string, reason = "goodwill") => ({ usd, reason, idempotencyKey: crypto.randomUUID() });
const userIdOf = async (person: Person) => (await person.get("/api/console/me")).body.user.id as string;

/** Every route of operators, with what it takes. */
const ROUTES: readonly (readonly [method: string, path: string, body?: unknown])[] = [
	["GET", "/api/console/operator/summary"],
	["GET", "/api/console/operator/accounts"],
	["GET", at("")],
	["POST", at("/suspend"), { reason: "because" }],
	["POST", at("/unsuspend"), { reason: "because" }],
	["POST", at("/adjust"), adjustment("1")],
	["GET", "/api/console/operator/top-ups"],
	["POST", "/api/console/operator/top-ups/top_x/confirm", { transactionReference: "bank 1" }],
	["POST", "/api/console/operator/top-ups/top_x/reject", { reason: "because" }],
	["POST", "/api/console/operator/payment-findings/close", { id: "x", reason: "because" }],
	["GET", "/api/console/operator/deployments"],
	["GET", "/api/console/operator/instances"],
	["GET", "/api/console/operator/reconciliation"],
	["POST", "/api/console/operator/reconciliation", {}],
	["GET", "/api/console/operator/audit"],
	["GET", "/api/console/live?topics=operator"],
];

test("in production an operator without a second factor is asked for it everywhere, can set it up, and is one then", async () => {
	const person = await operator(product);
	for (const [method, path, body] of ROUTES) {
		const answer = method === "GET" ? await person.get(path) : await person.send(method, path, body);
		expect([path, answer.status, answer.body.error?.code]).toEqual([path, 403, "second_factor_required"]);
	}
	expect((await customer.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(0);
	// Begun and not confirmed by a code is not set up.
	const enabled = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	expect((await person.get("/api/console/operator/summary")).status).toBe(403);
	const totp = new URL(enabled.body.totpURI).searchParams.get("secret") ?? "";
	await person.send("POST", "/api/auth/two-factor/verify-totp", { code: totpCode(totp) });
	expect((await person.get("/api/console/operator/summary")).status).toBe(200);

	const thief = newPerson(product, person.email);
	await thief.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	expect((await thief.get("/api/console/operator/summary")).status).toBe(401);
});

test("nobody decides about an account that he belongs to, did, or is asked into", async () => {
	const idempotent = (accountId: string, topUpId: string) =>
		[
			["/suspend", { reason: "because" }],
			["/unsuspend", { reason: "because" }],
			["/adjust", adjustment("500")],
			[`/api/console/operator/top-ups/${topUpId}/confirm`, { transactionReference: `bank ${topUpId}` }],
			[`/api/console/operator/top-ups/${topUpId}/reject`, { reason: "because" }],
		].map(
			([path, body]) => [String(path).startsWith("/api") ? String(path) : at(String(path), accountId), body] as const,
		);
	const owner = await signedUp(product);
	const topUp = (await owner.send("POST", "/api/console/credit/top-ups/transfer", { usd: "200" })).body.topUp.id;
	const refused = async (person: Person, accountId: string, topUpId: string) => {
		for (const [path, body] of idempotent(accountId, topUpId)) {
			const { status, body: answer } = await person.send("POST", path, body);
			expect([path, status, answer.error?.code]).toEqual([path, 403, "forbidden"]);
		}
	};
	// His own account, made at his first visit.
	const own = (await ann.get("/api/console/me")).body.account.id;
	const ownTopUp = (await ann.send("POST", "/api/console/credit/top-ups/transfer", { usd: "200" })).body.topUp.id;
	await refused(ann, own, ownTopUp);
	// Another's, that he is asked into; belongs to; and has left.
	const invite = await owner.send("POST", "/api/console/invitations", { email: ben.email, role: "owner" });
	expect(invite.status).toBe(200);
	await refused(ben, owner.accountId, topUp);
	await product.db.sql`delete from invitation where account_id = ${owner.accountId}`;
	const benId = await userIdOf(ben);
	await product.db.sql`insert into member (user_id, account_id, role) values (${benId}, ${owner.accountId}, 'owner')`;
	await refused(ben, owner.accountId, topUp);
	const removed = await owner.send("DELETE", `/api/console/members/${benId}`);
	expect(removed.status).toBe(200);
	await refused(ben, owner.accountId, topUp);
	// Another operator may.
	expect((await ann.send("POST", at("/adjust", owner.accountId), adjustment("5"))).status).toBe(200);
	const { body } = await ann.send("POST", `/api/console/operator/top-ups/${topUp}/confirm`, {
		transactionReference: `bank ${topUp}`,
	});
	expect(body.topUp.state).toBe("confirmed");
	expect((await owner.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(205e9);
});
