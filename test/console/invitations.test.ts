import { expect, test } from "bun:test";
import { sendInvitation } from "../../src/console/members/invitations.ts";
import { changeMember } from "../../src/console/members/members.ts";
import { deleteOldCounts } from "../../src/console/rate-counter.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { mailsTo } from "./mailbox.ts";
import { PERSON_ENV, signedUp } from "./person.ts";

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });

const founder = await signedUp(service);
const founderId = (await founder.get("/api/console/me")).body.user.id;
async function newAccount(): Promise<string> {
	const email = `${crypto.randomUUID()}@example.com`;
	const { id } = await createAccount(service.db.statements, { email, vouched: true });
	await service.db.sql`insert into member (user_id, account_id, role) values (${founderId}, ${id}, 'admin')`;
	return id;
}
const inviteTo = (accountId: string, email: string) =>
	sendInvitation(service.db.statements, accountId, { email, role: "viewer", invitedBy: founderId });
const daysPass = (days: number) =>
	service.db.sql`update rate_count set started_at = started_at - ${days}::float8 * interval '1 day'`;

test("one address can be invited five times a day by all accounts together", async () => {
	const owner = await signedUp(service);
	const email = `${crypto.randomUUID()}@example.com`;
	for (let nth = 0; nth < 3; nth++) await inviteTo(await newAccount(), nth === 1 ? email.toUpperCase() : email);
	const send = () => owner.send("POST", "/api/console/invitations", { email, role: "developer" });
	const [fourth, fifth, sixth] = [await send(), await send(), await send()];
	expect([fourth.status, fifth.status, sixth.status]).toEqual([200, 200, 429]);
	expect(sixth.body.error).toMatchObject({ code: "rate_limit_exceeded", param: "email" });
	expect(sixth.body.error.message).toContain("Try again tomorrow");
	const retryAfterS = Number(sixth.headers.get("retry-after"));
	expect(retryAfterS).toBeGreaterThan(23 * 3600);
	expect(retryAfterS).toBeLessThanOrEqual(24 * 3600);
	await waitFor(() => mailsTo(email).length === 2, "both mails to arrive");
	// The last mailed link must stay valid, and other addresses can still be invited.
	expect((await owner.get("/api/console/members")).body.invitations).toMatchObject([{ email }]);
	const other = await owner.send("POST", "/api/console/invitations", { email: `x${email}`, role: "developer" });
	expect(other.status).toBe(200);
	await daysPass(1.01);
	expect((await send()).status).toBe(200);
	await waitFor(() => mailsTo(email).length === 3, "the mail of the next day");
});

test("each of 1,100 members is listed once while other members join and leave", async () => {
	const owner = await signedUp(service);
	const { accountId } = owner;
	const join = (from: number, to: number) => service.db.sql`
		with u as (
			insert into console_user (id, name, email, email_verified)
			select 'usr_many_' || lpad(n::text, 5, '0'), 'Somebody', n || '@many.example', true from generate_series(${from}::int, ${to}::int) n returning id
		)
		insert into member (user_id, account_id, role) select id, ${accountId}, 'viewer' from u`;
	await join(1, 1_100);
	const seen: string[] = [];
	for (let after: string | null = ""; after !== null; ) {
		const { body } = await owner.get(`/api/console/members${after === "" ? "" : `?after=${after}`}`);
		seen.push(...body.items.map(({ userId }: { userId: string }) => userId));
		after = body.next ?? null;
		await service.db.sql`delete from member where user_id = ${seen.at(-1) ?? ""}`;
		if (seen.length === 500) await join(1_101, 1_101);
	}
	expect([seen.length, new Set(seen).size]).toEqual([1_102, 1_102]);
});

test("an invalid invitation link gets the same message as a used one", async () => {
	const says = "This invitation is no longer valid, or was sent to another address.";
	for (const token of ["", "nothing", "x".repeat(1_000)]) {
		const answer = await founder.send("POST", "/api/console/invitations/accept", { token });
		expect([answer.status, answer.body.error.message]).toEqual([404, says]);
	}
	expect((await founder.send("POST", "/api/console/invitations/accept", {})).status).toBe(400);
});

test("an account can send fifty invitations a day; refused invitations do not count", async () => {
	const [busy, other] = [await newAccount(), await newAccount()];
	const address = () => `${crypto.randomUUID()}@example.com`;
	for (let nth = 0; nth < 50; nth++) {
		const { id } = await inviteTo(busy, address());
		await service.db.sql`delete from invitation where id = ${id}`;
	}
	const wanted = address();
	for (let nth = 0; nth < 10; nth++)
		await expect(inviteTo(busy, wanted)).rejects.toMatchObject({ code: "rate_limit_exceeded", param: "email" });
	expect((await inviteTo(other, wanted)).email).toBe(wanted);
});

test("an invitation counter is deleted when its period is over, not earlier", async () => {
	await inviteTo(await newAccount(), "forgotten@example.com");
	const rows = async () => Number((await service.db.sql`select count(*) as n from rate_count`)[0]?.n);
	expect(await rows()).toBeGreaterThan(0);
	await daysPass(1.9);
	await deleteOldCounts(service.db.statements);
	expect((await service.db.sql`select 1 from rate_count where key like 'invitations to:%'`).length).toBeGreaterThan(0);
	await daysPass(0.2);
	await deleteOldCounts(service.db.statements);
	expect(await rows()).toBe(0);
});

test("counters of invitations per day survive the sign-in library's clean-up", async () => {
	const email = `${crypto.randomUUID()}@example.com`;
	for (let nth = 0; nth < 5; nth++) await inviteTo(await newAccount(), email);
	const anHourPasses = () => service.db.sql`update rate_limit set last_request = last_request - 3600000`;
	const person = await signedUp(service);
	await anHourPasses();
	await person.get("/api/auth/get-session");
	await anHourPasses();
	await person.get("/api/auth/get-session");
	await expect(inviteTo(await newAccount(), email)).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});

test("an invitation is void if its sender loses the right while it is sent", async () => {
	const { sql, statements } = service.db;
	for (const role of ["viewer", null] as const) {
		const accountId = await newAccount();
		const admin = await signedUp(service);
		const adminId = (await admin.get("/api/console/me")).body.user.id as string;
		await sql`insert into member (user_id, account_id, role) values (${adminId}, ${accountId}, 'admin')`;
		const friend = await signedUp(service);
		// The demotion waits for the uncommitted invitation, but its snapshot of members is older than the invitation.
		const { taken, token } = await sql.begin(async (held) => {
			const inTransaction = ((...query: Parameters<typeof sql>) => held(...query)) as unknown as typeof statements;
			const made = await sendInvitation(inTransaction, accountId, {
				email: friend.email,
				role: "admin",
				invitedBy: adminId,
			});
			const change = changeMember(statements, accountId, { userId: adminId, by: founderId, role });
			const changes = () => lockWaits(sql, "%with people as materialized%");
			await waitFor(async () => (await changes()) > 0, "the right to be taken behind it");
			return { taken: change, token: made.token };
		});
		await taken;
		const accepted = await friend.send("POST", "/api/console/invitations/accept", { token });
		expect([role, accepted.status]).toEqual([role, 404]);
	}
});

test("an invitation is mailed once although the page repeats its request", async () => {
	const owner = await signedUp(service);
	const email = `${crypto.randomUUID()}@example.com`;
	const asked = { email, role: "viewer", token: crypto.randomUUID() };
	const repeats = await Promise.all([1, 2, 3, 4].map(() => owner.send("POST", "/api/console/invitations", asked)));
	expect(repeats.map(({ status, body }) => [status, body.id])).toEqual(Array(4).fill([200, repeats[0]?.body.id]));
	await owner.send("POST", "/api/console/invitations", { email: `x${email}`, role: "viewer" });
	await waitFor(() => mailsTo(`x${email}`).length === 1, "a later mail");
	expect(mailsTo(email)).toHaveLength(1);
});
