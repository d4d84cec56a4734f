import { expect, test } from "bun:test";
import { createAccount } from "../../src/keys/account-admin.ts";
import {
	confirmAddress,
	mailedLink,
	newPerson,
	PASSWORD,
	PERSON_ENV,
	type Person,
	signedUp,
} from "../console/person.ts";
import { withConsole } from "./product.ts";

/** A stranger signs up with another person's address, before, during and after the owner's sign-up. */

const service = await withConsole(PERSON_ENV);

const STRANGERS = "the stranger's own password";
const OWNERS = "the owner's own long password";

/** Two browsers: that of the address's owner, and that of a stranger who knows the address. */
function twoOfOneAddress(): [Person, Person] {
	const owner = newPerson(service);
	return [owner, newPerson(service, owner.email)];
}
async function signUp(person: Person, password: string) {
	const body = { name: "Somebody", email: person.email, password };
	const answer = await person.send("POST", "/api/auth/sign-up/email", body);
	expect([answer.status, answer.body]).toEqual([200, { status: true }]);
	return answer;
}
const signIn = async (person: Person, password: string) =>
	(await person.send("POST", "/api/auth/sign-in/email", { email: person.email, password })).status;
const me = async (person: Person) => (await person.get("/api/console/me")).status;
const tokenOf = async (person: Person) => new URL(await mailedLink(person)).searchParams.get("token") ?? "";
const verify = (person: Person, token: unknown, more = {}) =>
	person.send("POST", "/api/auth/verify-email", { token, ...more });

test("a stranger's password for an address is void once the owner proves the address", async () => {
	const [owner, stranger] = twoOfOneAddress();
	await signUp(stranger, STRANGERS);
	const token = await tokenOf(owner);
	const bare = await verify(owner, token);
	expect([bare.status, bare.body.code]).toEqual([400, "PASSWORD_REQUIRED"]);
	expect(await me(owner)).toBe(401);
	const weak = await verify(owner, token, { name: "Owner", newPassword: "short" });
	expect([weak.status, weak.body.code]).toEqual([400, "PASSWORD_TOO_SHORT"]);
	const proved = await verify(owner, token, { name: "Owner", newPassword: OWNERS });
	expect(proved.body).toEqual({ status: true, signedIn: false });
	expect([await me(owner), await me(stranger)]).toEqual([401, 401]);
	expect(await signIn(stranger, STRANGERS)).toBe(401);
	expect(await signIn(owner, OWNERS)).toBe(200);
	expect((await owner.get("/api/console/me")).body.user.name).toBe("Owner");
});

test("an owner who signs up after a stranger used the address keeps the new password", async () => {
	const [owner, stranger] = twoOfOneAddress();
	await signUp(stranger, STRANGERS);
	const strangers = await tokenOf(owner);
	await signUp(owner, OWNERS);
	const owners = await tokenOf(owner);
	expect(owners).not.toBe(strangers);
	// If the owner opens the stranger's mail by mistake, the stranger's password does not become active.
	expect((await verify(owner, strangers)).body.code).toBe("PASSWORD_REQUIRED");
	expect((await verify(owner, owners)).body).toEqual({ status: true, signedIn: true });
	expect(await me(owner)).toBe(200);
	expect([await signIn(newPerson(service, owner.email), STRANGERS), await signIn(owner, OWNERS)]).toEqual([401, 200]);
	expect((await service.db.sql`select 1 from sign_up where email = ${owner.email}`).length).toBe(0);
	const late = await verify(stranger, strangers, { name: "Stranger", newPassword: STRANGERS });
	expect([late.status, late.body.code]).toEqual([400, "INVALID_TOKEN"]);
});

test("fetching the mailed link by GET or HEAD does not prove the mail address", async () => {
	const [owner, stranger] = twoOfOneAddress();
	const { id } = await createAccount(service.db.statements, { email: owner.email, vouched: true });
	await signUp(stranger, STRANGERS);
	const link = await mailedLink(owner);
	const token = new URL(link).searchParams.get("token") ?? "";
	const old = `/api/auth/verify-email?token=${token}`;
	for (const browser of [owner, stranger]) {
		for (const method of ["GET", "HEAD"])
			for (const address of [link, old, `${old}&callbackURL=/overview`]) {
				const response = await browser.fetch(address, { method });
				await response.text();
				expect(response.headers.getSetCookie()).toEqual([]);
			}
		expect(await me(browser)).toBe(401);
	}
	expect((await service.db.sql`select 1 from console_user where email = ${owner.email}`).length).toBe(0);
	// A form on another site, which a browser submits without a preflight request.
	const form = await owner.fetch(old, {
		method: "POST",
		headers: { "content-type": "application/x-www-form-urlencoded", origin: "https://other.example" },
		body: new URLSearchParams({ token }).toString(),
	});
	expect(form.status).toBe(403);
	expect((await service.db.sql`select 1 from member where account_id = ${id}`).length).toBe(0);
	expect((await verify(owner, token, { name: "Owner", newPassword: OWNERS })).status).toBe(200);
	await signIn(owner, OWNERS);
	expect((await owner.get("/api/console/me")).body.account.id).toBe(id);
});

test("proving a mail address removes earlier passwords and sessions", async () => {
	const [owner, stranger] = twoOfOneAddress();
	const { sql } = service.db;
	const other = await signedUp(service);
	// Creates a person whose password, session, social sign-in, second factor and reset token are all a stranger's.
	await sql`insert into console_user (id, name, email, two_factor_enabled) values ('usr_old', 'Stranger', ${owner.email}, true)`;
	await sql`
		insert into auth_account (id, account_id, provider_id, user_id, password)
		select 'old' || n, 'usr_old', p, 'usr_old', w from (values
			(1, 'credential', (select a.password from auth_account a join console_user u on u.id = a.user_id where u.email = ${other.email})),
			(2, 'github', null)) v (n, p, w)`;
	await sql`
		insert into session (id, token, user_id, expires_at) values ('old', 'old', 'usr_old', now() + interval '1 day')`;
	await sql`insert into two_factor (id, secret, backup_codes, user_id) values ('old', 'x', 'x', 'usr_old')`;
	await sql`
		insert into verification (id, identifier, value, expires_at)
		values ('old', 'reset-password:old-token', 'usr_old', now() + interval '1 day')`;
	expect(await signIn(stranger, PASSWORD)).toBe(403);
	await signUp(owner, OWNERS);
	expect((await confirmAddress(owner)).body).toEqual({ status: true, signedIn: true });
	const [left] = await sql`
		select (select count(*)::int from auth_account where user_id = 'usr_old') as credentials,
			(select count(*)::int from session where user_id = 'usr_old') as sessions,
			(select count(*)::int from two_factor where user_id = 'usr_old') as factors,
			(select count(*)::int from verification where value = 'usr_old') as tokens`;
	expect(left).toEqual({ credentials: 1, sessions: 1, factors: 0, tokens: 0 });
	const reset = await stranger.send("POST", "/api/auth/reset-password", { newPassword: STRANGERS, token: "old-token" });
	expect(reset.status).toBe(400);
	expect([await signIn(stranger, PASSWORD), await signIn(owner, OWNERS)]).toEqual([401, 200]);
});

test("only one of many concurrent proofs of a mail address succeeds", async () => {
	const [owner, stranger] = twoOfOneAddress();
	await signUp(stranger, STRANGERS);
	const strangers = await tokenOf(owner);
	await signUp(owner, OWNERS);
	const owners = await tokenOf(owner);
	const all = await Promise.all(
		[0, 1, 2].flatMap(() => [
			verify(owner, owners),
			verify(newPerson(service, owner.email), strangers, { name: "x", newPassword: STRANGERS }),
		]),
	);
	const won = all.filter(({ status }) => status === 200);
	expect(won).toHaveLength(1);
	const good = won[0]?.body.signedIn ? OWNERS : STRANGERS;
	const statuses = await Promise.all([OWNERS, STRANGERS].map((word) => signIn(newPerson(service, owner.email), word)));
	expect(statuses).toEqual(good === OWNERS ? [200, 401] : [401, 200]);
	const [row] = await service.db.sql`
		select count(distinct u.id)::int as people, count(a.id)::int as passwords
		from console_user u join auth_account a on a.user_id = u.id where u.email = ${owner.email}`;
	expect(row).toEqual({ people: 1, passwords: 1 });
	expect((await service.db.sql`select 1 from sign_up where email = ${owner.email}`).length).toBe(0);
	// Stores a credential at the moment in which the owner proves the address.
	await service.db.sql`
		insert into sign_up (token_hash, email, name, password, browser_hash, expires_at)
		values (${new Bun.CryptoHasher("sha256").update("late").digest("hex")}, ${owner.email}, 'x', 'x', 'x', now() + interval '1 day')`;
	const late = await verify(stranger, "late", { name: "x", newPassword: "a third long password" });
	expect(late.body.code).toBe("INVALID_TOKEN");
	expect(await signIn(newPerson(service, owner.email), good)).toBe(200);
});

test("a sign-up with a registered address neither succeeds nor reveals that it exists", async () => {
	const owner = await signedUp(service);
	const stranger = newPerson(service, owner.email.toUpperCase());
	const known = await signUp(stranger, STRANGERS);
	const unknown = await signUp(newPerson(service), STRANGERS);
	expect([known.status, known.body]).toEqual([unknown.status, unknown.body]);
	const names = (headers: Headers) => headers.getSetCookie().map((line) => line.replace(/=[^;]*/, ""));
	expect(names(known.headers)).toEqual(names(unknown.headers));
	expect(new URL(await mailedLink(owner)).pathname).toBe("/sign-in");
	expect((await service.db.sql`select 1 from sign_up where email = ${owner.email}`).length).toBe(0);
	expect([await signIn(stranger, STRANGERS), await me(owner)]).toEqual([401, 200]);
});

test("a sign-up link expires after a day, and malformed fields get 400", async () => {
	const person = newPerson(service);
	await signUp(person, OWNERS);
	const token = await tokenOf(person);
	await service.db.sql`update sign_up set expires_at = now() - interval '1 minute' where email = ${person.email}`;
	expect((await verify(person, token)).body.code).toBe("INVALID_TOKEN");
	const odd = [undefined, null, 7, {}, [], "", "\0", "x".repeat(10_000), { $ne: "" }];
	for (const value of odd) {
		expect((await verify(newPerson(service), value)).status).toBe(400);
		for (const field of ["name", "email", "password"]) {
			const body = { name: "N", email: "odd@example.com", password: OWNERS, [field]: value };
			expect((await newPerson(service).send("POST", "/api/auth/sign-up/email", body)).status).toBe(400);
		}
	}
	const away = newPerson(service);
	const next = "//other.example/x";
	await away.send("POST", "/api/auth/sign-up/email", { name: "N", email: away.email, password: OWNERS, next });
	expect(await mailedLink(away)).not.toContain("other.example");
});
