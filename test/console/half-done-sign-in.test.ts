/** A change of credentials that is cut off at any of its statements takes full effect or can be repeated. */
import { afterEach, beforeEach, expect, setSystemTime, test } from "bun:test";
import { createDevice } from "../attack/passkey.ts";
import { withService } from "../support/service.ts";
import { mailedLink, newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "./person.ts";
import { totpCode } from "./totp.ts";

const service = await withService({ env: PERSON_ENV });
const { sql } = service.db;
await sql`
	create function test_cut() returns trigger language plpgsql as $$
	begin
		perform pg_terminate_backend(pg_backend_pid());
		perform pg_sleep(1);
		return coalesce(new, old);
	end $$`;
const NEW_PASSWORD = "another good one, long enough";

/** Runs `run` and breaks its connection at the statement that changes a row of this table. */
async function cutAt<T>([act, table]: readonly [string, string], run: () => Promise<T>): Promise<T> {
	await sql.unsafe(`create trigger test_cut before ${act} on ${table} for each row execute function test_cut()`);
	try {
		return await run();
	} finally {
		await sql.unsafe(`drop trigger test_cut on ${table}`);
	}
}

async function signIn(email: string, password: string): Promise<Person & { status: number }> {
	const person = newPerson(service, email);
	const { status } = await person.send("POST", "/api/auth/sign-in/email", { email, password });
	return { ...person, status };
}
const isIn = async (person: Person) => (await person.get("/api/console/me")).status === 200;

async function withTotp(person: Person): Promise<string> {
	const enabled = await person.send("POST", "/api/auth/two-factor/enable", { password: PASSWORD });
	return new URL(enabled.body.totpURI).searchParams.get("secret") ?? "";
}
const STEP_MS = 30_000;
// Sets the clock to the middle of a 30-second step, so that no one-time code expires during the test.
beforeEach(() => {
	setSystemTime(new Date((Math.floor(Date.now() / STEP_MS) + 0.5) * STEP_MS));
});
afterEach(() => {
	setSystemTime();
});

/** Returns a code. It is accepted once, from one 30-second step before its own to one step after it. */
const codeOf = (secret: string, stepsAhead: number) => totpCode(secret, Date.now() + stepsAhead * STEP_MS);
const confirm = (person: Person, secret: string, stepsAhead = 0) =>
	person.send("POST", "/api/auth/two-factor/verify-totp", { code: codeOf(secret, stepsAhead) });

const STATEMENTS = [
	["update", "auth_account"],
	["delete", "session"],
	["delete", "passkey"],
	["delete", "verification"],
] as const;

for (const at of STATEMENTS) {
	test(`a password reset that failed at its ${at.join(" of ")} can be repeated`, async () => {
		const owner = await signedUp(service);
		const { email } = owner;
		const device = createDevice();
		await sql`
			insert into passkey (id, user_id, name, public_key, counter)
			select ${device.id}, id, 'of a thief', ${device.publicKey}, 0 from console_user where email = ${email}`;
		await owner.send("POST", "/api/auth/request-password-reset", { email });
		const token = new URL(await mailedLink(owner)).searchParams.get("token");
		const reset = () =>
			newPerson(service).send("POST", "/api/auth/reset-password", { token, newPassword: NEW_PASSWORD });
		const thief = await signIn(email, PASSWORD);
		const left = async () => {
			const [row] = await sql`
				select count(*)::int as passkeys from passkey k join console_user u on u.id = k.user_id where u.email = ${email}`;
			return { session: await isIn(thief), passkeys: row?.passkeys };
		};
		expect((await cutAt(at, reset)).status).toBe(503);
		const isNew = (await signIn(email, NEW_PASSWORD)).status === 200;
		expect(await left()).toEqual(isNew ? { session: false, passkeys: 0 } : { session: true, passkeys: 1 });
		expect((await reset()).status).toBe(200);
		expect(await left()).toEqual({ session: false, passkeys: 0 });
		expect((await signIn(email, PASSWORD)).status).toBe(401);
		expect((await signIn(email, NEW_PASSWORD)).status).toBe(200);
		expect((await reset()).body.code).toBe("INVALID_TOKEN");
	});
}

test("a password change that failed before it ended other sessions changes nothing", async () => {
	const owner = await signedUp(service);
	const thief = await signIn(owner.email, PASSWORD);
	const body = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
	const change = () => owner.send("POST", "/api/auth/change-password", body);
	expect((await cutAt(["delete", "session"], change)).status).toBe(503);
	expect([(await signIn(owner.email, NEW_PASSWORD)).status, await isIn(owner)]).toEqual([401, true]);
	expect((await change()).status).toBe(200);
	expect([await isIn(owner), await isIn(thief)]).toEqual([true, false]);
	expect((await signIn(owner.email, NEW_PASSWORD)).status).toBe(200);
});

test("a failed set-up of a second factor locks no owner out", async () => {
	for (const at of [
		["delete", "session"],
		["update", "two_factor"],
	] as const) {
		const owner = await signedUp(service);
		const thief = await signIn(owner.email, PASSWORD);
		const secret = await withTotp(owner);
		expect((await cutAt(at, () => confirm(owner, secret))).status).toBe(503);
		expect({ at, owner: await isIn(owner) }).toEqual({ at, owner: true });
		expect((await owner.get("/api/console/me")).body.user.twoFactorEnabled).toBe(false);
		expect((await confirm(owner, secret, 1)).status).toBe(200);
		expect([await isIn(owner), await isIn(thief)]).toEqual([true, false]);
		const again = await signIn(owner.email, PASSWORD);
		expect(await isIn(again)).toBe(false);
		expect((await confirm(again, secret, -1)).status).toBe(200);
		expect(await isIn(again)).toBe(true);
	}
});

test("a failed removal of a second factor can be followed by a new set-up", async () => {
	const owner = await signedUp(service);
	const former = await withTotp(owner);
	expect((await confirm(owner, former)).status).toBe(200);
	const off = (stepsAhead: number) =>
		owner.send("POST", "/api/auth/two-factor/disable", { password: PASSWORD, code: codeOf(former, stepsAhead) });
	expect((await cutAt(["delete", "two_factor"], () => off(1))).status).toBe(503);
	if ((await owner.get("/api/console/me")).body.user.twoFactorEnabled) expect((await off(-1)).status).toBe(200);
	expect((await confirm(owner, await withTotp(owner))).status).toBe(200);
	expect((await owner.get("/api/console/me")).body.user.twoFactorEnabled).toBe(true);
	expect(await isIn(await signIn(owner.email, PASSWORD))).toBe(false);
});
