import { expect, test } from "bun:test";
import { newPerson, operator, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { totpCode, turnOnTwoFactor } from "../console/totp.ts";
import { withChat } from "../support/service.ts";

/** Neither a single operator nor a thief of an operator's password can move money alone. */

const SECRETS = { KEY_PEPPER: "p".repeat(64), CONSOLE_SECRET: "s".repeat(64) };
const { service } = await withChat({
	env: { NODE_ENV: "production", TOPUP_SECOND_LOOK_USD: "1000", ...SECRETS, ...PERSON_ENV },
});

async function boss(): Promise<Person> {
	const person = await operator(service);
	await turnOnTwoFactor(person);
	return person;
}

const customer = await signedUp(service);
const [ann, ben] = [await boss(), await boss()];
const at = (path: string, accountId = customer.accountId) => `/api/console/operator/accounts/${accountId}${path}`;
const adjustment = (usd: string, reason = "goodwill") => ({ usd, reason, idempotencyKey: crypto.randomUUID() });
/** Announces a bank transfer; returns the top-up's id. */
const transferOf = async (person: Person, usd: string): Promise<string> =>
	(await person.send("POST", "/api/console/credit/top-ups/transfer", { usd })).body.topUp.id;
const confirm = (person: Person, id: string, transactionReference: string) =>
	person.send("POST", `/api/console/operator/top-ups/${id}/confirm`, { transactionReference });
const userIdOf = async (person: Person) => (await person.get("/api/console/me")).body.user.id as string;

const ROUTES: readonly (readonly [method: string, path: string, body?: unknown])[] = [
	["GET", "/api/console/operator/summary"],
	["GET", "/api/console/operator/accounts"],
	["GET", at("")],
	["POST", at("/suspend"), { reason: "because" }],
	["POST", at("/view"), {}],
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
	["GET", "/api/console/operator/management-keys"],
	["POST", "/api/console/operator/management-keys", { name: "x", scopes: ["accounts:read"] }],
	["POST", "/api/console/operator/management-keys/mgk_x/revoke", {}],
	["GET", "/api/console/live?topics=operator"],
];

test("an operator in production needs a second factor to sign in", async () => {
	const person = await operator(service);
	for (const [method, path, body] of ROUTES) {
		const answer = method === "GET" ? await person.get(path) : await person.send(method, path, body);
		expect([path, answer.status, answer.body.error?.code]).toEqual([path, 403, "second_factor_required"]);
	}
	expect((await customer.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(0);
	// A second factor counts only after a code has confirmed it.
	const enabled = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	expect((await person.get("/api/console/operator/summary")).status).toBe(403);
	const totp = new URL(enabled.body.totpURI).searchParams.get("secret") ?? "";
	await person.send("POST", "/api/auth/two-factor/verify-totp", { code: totpCode(totp) });
	expect((await person.get("/api/console/operator/summary")).status).toBe(200);

	const thief = newPerson(service, person.email);
	await thief.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD });
	expect((await thief.get("/api/console/operator/summary")).status).toBe(401);
});

test("an operator cannot approve requests of the operator's own accounts", async () => {
	const decisions = (accountId: string, topUpId: string) =>
		[
			[at("/suspend", accountId), { reason: "because" }],
			[at("/unsuspend", accountId), { reason: "because" }],
			[at("/adjust", accountId), adjustment("500")],
			[`/api/console/operator/top-ups/${topUpId}/confirm`, { transactionReference: `bank ${topUpId}` }],
			[`/api/console/operator/top-ups/${topUpId}/reject`, { reason: "because" }],
		] as const;
	const owner = await signedUp(service);
	const topUp = await transferOf(owner, "200");
	const refused = async (person: Person, accountId: string, topUpId: string) => {
		for (const [path, body] of decisions(accountId, topUpId)) {
			const { status, body: answer } = await person.send("POST", path, body);
			expect([path, status, answer.error?.code]).toEqual([path, 403, "forbidden"]);
		}
	};
	// The operator's own account, which was created at the first visit.
	const own = (await ann.get("/api/console/me")).body.account.id;
	const ownTopUp = await transferOf(ann, "200");
	await refused(ann, own, ownTopUp);
	// An account that the operator will join and later leave.
	const invite = await owner.send("POST", "/api/console/invitations", { email: ben.email, role: "owner" });
	expect(invite.status).toBe(200);
	await refused(ben, owner.accountId, topUp);
	await service.db.sql`delete from invitation where account_id = ${owner.accountId}`;
	const benId = await userIdOf(ben);
	await service.db.sql`insert into member (user_id, account_id, role) values (${benId}, ${owner.accountId}, 'owner')`;
	await refused(ben, owner.accountId, topUp);
	const removed = await owner.send("DELETE", `/api/console/members/${benId}`);
	expect(removed.status).toBe(200);
	await refused(ben, owner.accountId, topUp);
	expect((await ann.send("POST", at("/adjust", owner.accountId), adjustment("5"))).status).toBe(200);
	const { body } = await confirm(ann, topUp, `bank ${topUp}`);
	expect(body.topUp.state).toBe("confirmed");
	expect((await owner.get("/api/console/credit")).body.balance.balanceNanoUsd).toBe(205e9);
});

const credit = async (person: Person) =>
	(await person.get("/api/console/credit")).body.balance.balanceNanoUsd as number;
const waiting = async (person: Person, accountId: string) =>
	(await person.get("/api/console/operator/adjustments")).body.items.filter(
		(item: { accountId: string }) => item.accountId === accountId,
	);
const decide = (person: Person, id: string, act: "confirm" | "reject", body: unknown = {}) =>
	person.send("POST", `/api/console/operator/adjustments/${id}/${act}`, body);

test("a large credit adjustment needs a second operator", async () => {
	const [carl, dora, eve] = [await boss(), await boss(), await boss()];
	const payee = await signedUp(service);
	const large = adjustment("1000", "made good for the outage");
	// The repeated adjustment counts once, in any form and also concurrently.
	const sent = await Promise.all(
		Array.from({ length: 6 }, (_, nth) =>
			carl.send("POST", at("/adjust", payee.accountId), {
				...large,
				idempotencyKey: nth % 2 === 0 ? large.idempotencyKey : large.idempotencyKey.toUpperCase(),
			}),
		),
	);
	expect(sent.map(({ status, body }) => [status, body.secondLookNeeded])).toEqual(Array(6).fill([200, true]));
	const [row, ...others] = await waiting(dora, payee.accountId);
	expect(others).toEqual([]);
	expect(row).toMatchObject({ amountNanoUsd: 1000e9, firstBy: carl.email, reason: "made good for the outage" });
	expect((await dora.get("/api/console/operator/summary")).body.waitingAdjustments).toContainEqual(row);
	// Another operator can neither repeat the adjustment's key nor use it for another adjustment.
	expect((await dora.send("POST", at("/adjust", payee.accountId), large)).status).toBe(409);
	const changed = { ...large, usd: "999" };
	expect((await carl.send("POST", at("/adjust", payee.accountId), changed)).status).toBe(409);
	expect((await decide(carl, row.id, "confirm")).status).toBe(409);
	expect(await credit(payee)).toBe(0);

	const confirmed = await Promise.all([dora, eve, dora, eve, dora].map((person) => decide(person, row.id, "confirm")));
	expect(confirmed.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
	expect(await credit(payee)).toBe(1000e9);
	expect((await decide(carl, row.id, "reject", { reason: "too late" })).status).toBe(409);
	const audit = (await dora.get(`/api/console/operator/audit?subject=${payee.accountId}`)).body.items;
	expect(audit.map(({ action }: { action: string }) => action).slice(0, 2)).toEqual([
		"account.adjust",
		"adjustment.ask",
	]);
});

test("small credit adjustments that add up to a large one need a second operator", async () => {
	const carl = await boss();
	const [one, two] = [await signedUp(service), await signedUp(service)];
	const sent = await Promise.all(
		Array.from({ length: 8 }, (_, nth) =>
			carl.send("POST", at("/adjust", (nth % 2 === 0 ? one : two).accountId), adjustment("300")),
		),
	);
	expect(sent.map(({ status }) => status)).toEqual(Array(8).fill(200));
	expect(sent.filter(({ body }) => !body.secondLookNeeded)).toHaveLength(3);
	expect((await credit(one)) + (await credit(two))).toBe(900e9);
	const back = await carl.send("POST", at("/adjust", one.accountId), adjustment("-300"));
	expect([back.status, back.body.secondLookNeeded]).toEqual([200, true]);
	// A day later, the sum of the operator's adjustments starts at zero again.
	await service.db.sql`update credit_adjustment set first_at = first_at - interval '25 hours' where state = 'booked'`;
	const next = await carl.send("POST", at("/adjust", one.accountId), adjustment("300"));
	expect([next.status, next.body.secondLookNeeded]).toEqual([200, false]);
});

test("a rejected credit adjustment is never booked", async () => {
	const [carl, dora] = [await boss(), await boss()];
	const payee = await signedUp(service);
	await carl.send("POST", at("/adjust", payee.accountId), adjustment("5000"));
	const [first] = await waiting(dora, payee.accountId);
	const raced = await Promise.all([
		decide(dora, first.id, "confirm"),
		decide(carl, first.id, "reject", { reason: "a slip" }),
	]);
	expect(raced.map(({ status }) => status).sort()).toEqual([200, 409]);
	const booked = raced[0]?.status === 200;
	expect(await credit(payee)).toBe(booked ? 5000e9 : 0);

	await carl.send("POST", at("/adjust", payee.accountId), adjustment("-9000"));
	const [second] = await waiting(dora, payee.accountId);
	expect((await decide(dora, second.id, "confirm")).status).toBe(409);
	expect(await waiting(dora, payee.accountId)).toEqual([second]);
	expect((await decide(dora, second.id, "reject", { reason: "not covered" })).status).toBe(200);
	expect((await decide(dora, second.id, "confirm")).status).toBe(409);
	expect(await waiting(dora, payee.accountId)).toEqual([]);
	expect(await credit(payee)).toBe(booked ? 5000e9 : 0);
});

test("one bank transaction can confirm only one top-up", async () => {
	const payer = await signedUp(service);
	const [carl, dora] = [await boss(), await boss()];
	const expected = (usd: string) => transferOf(payer, usd);
	const [paid, other, large] = [await expected("100"), await expected("100"), await expected("2000")];
	expect((await confirm(carl, paid, "BANK 2026/1")).status).toBe(200);
	for (const same of ["bank 2026/1", "Bank2026-1", " BANK  2026 1 ", "b.a.n.k.20261"])
		expect([same, (await confirm(carl, other, same)).status]).toEqual([same, 409]);
	for (const strange of ["ＢＡＮＫ20261", "BANK\u200b2026/1", "ВANK 2026/1", "--- / ---", "B\u0130NK 1", "--1"])
		expect([strange, (await confirm(carl, other, strange)).status]).toEqual([strange, 400]);
	expect(await credit(payer)).toBe(100e9);
	// A bank reference counts as the same in other spellings.
	expect((await confirm(carl, large, "Ref 77-A")).body.secondLookNeeded).toBe(true);
	expect((await confirm(dora, large, "REF 78-A")).status).toBe(409);
	expect((await confirm(dora, large, "ref77a")).body.topUp.state).toBe("confirmed");
	const raced = await Promise.all([confirm(carl, other, "Same-1"), confirm(dora, await expected("100"), "SAME 1")]);
	expect(raced.map(({ status }) => status).sort()).toEqual([200, 409]);
});

test("the bank transaction of a rejected top-up can confirm another top-up", async () => {
	const payer = await signedUp(service);
	const [carl, dora] = [await boss(), await boss()];
	const expected = () => transferOf(payer, "2000");
	const confirmed = async (person: Person, id: string, line = "LINE 90") => (await confirm(person, id, line)).status;
	const [rejected, cancelled, right] = [await expected(), await expected(), await expected()];
	expect(await confirmed(carl, rejected)).toBe(200);
	// The transaction confirms no second top-up while the first one is still pending.
	expect(await confirmed(carl, right)).toBe(409);
	const wrong = { reason: "the wrong one" };
	expect((await carl.send("POST", `/api/console/operator/top-ups/${rejected}/reject`, wrong)).status).toBe(200);
	expect(await confirmed(carl, cancelled, "line-90")).toBe(200);
	expect((await payer.send("POST", `/api/console/credit/top-ups/${cancelled}/cancel`)).status).toBe(200);
	for (const person of [carl, dora]) expect(await confirmed(person, right)).toBe(200);
	expect(await credit(payer)).toBe(2000e9);
	expect(await confirmed(dora, await expected())).toBe(409);
});
