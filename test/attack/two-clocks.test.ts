import { afterEach, expect, setSystemTime, test } from "bun:test";
import { deleteOldSessions, deleteUnverifiedPeople } from "../../src/console/sign-in/auth-sign-up.ts";
import { mailsTo } from "../console/mailbox.ts";
import { mailedLink, newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { totpCode, turnOnTwoFactor } from "../console/totp.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { createDevice } from "./passkey.ts";

/** Protections hold even if the clocks of the console and Postgres differ. */

const { service } = await withChat({ env: PERSON_ENV });
const { sql } = service.db;

const MINUTE_MS = 60_000;
/** Moves the clock of the console and its sign-in library, but not that of Postgres. */
const setApart = (minutes: number) => setSystemTime(new Date(Date.now() + minutes * MINUTE_MS));
afterEach(() => {
	setSystemTime();
});

const post = (browser: Person, act: string, body: object) => browser.send("POST", `/api/auth/${act}`, body);

async function withFactor() {
	const person = await signedUp(service);
	return { person, ...(await turnOnTwoFactor(person)) };
}

test("codes expire and guesses are limited although Postgres's clock is ahead", async () => {
	const { person, secret } = await withFactor();
	setApart(-20);
	const signIn = async () => {
		const browser = newPerson(service, person.email);
		await post(browser, "sign-in/email", { email: person.email, password: PASSWORD });
		return browser;
	};
	const [one, other] = [await signIn(), await signIn()];
	const code = totpCode(secret);
	expect((await post(one, "two-factor/verify-totp", { code })).status).toBe(200);
	expect((await post(other, "two-factor/verify-totp", { code })).status).toBe(401);

	const thief = await signIn();
	const right = [-1, 0, 1].map((step) => totpCode(secret, Date.now() + step * 30_000));
	const wrong = Array.from({ length: 10 }, (_, nth) => `00000${nth}`);
	const codes: string[] = [];
	for (const guess of wrong.filter((guess) => !right.includes(guess))) {
		const helper = newPerson(service, person.email);
		for (const [name, value] of thief.cookies) helper.cookies.set(name, value);
		codes.push((await post(helper, "two-factor/verify-totp", { code: guess })).body.code);
	}
	expect(codes.filter((said) => said === "INVALID_CODE").length).toBeLessThanOrEqual(5);
});

test("a new password deletes passkeys although Postgres's clock is ahead", async () => {
	const owner = await signedUp(service);
	const device = createDevice();
	await sql`
		insert into passkey (id, user_id, name, public_key, counter)
		select ${device.id}, id, 'a device', ${device.publicKey}, 0 from console_user where email = ${owner.email}`;
	setApart(-120);
	await post(owner, "request-password-reset", { email: owner.email });
	const token = new URL(await mailedLink(owner)).searchParams.get("token");
	const own = { token, newPassword: owner.email };
	expect((await post(newPerson(service), "reset-password", own)).status).toBe(400);
	const newPassword = "another good one, long enough";
	expect((await post(newPerson(service), "reset-password", { token, newPassword })).status).toBe(200);
	expect(await sql`select id from passkey where id = ${device.id}`).toHaveLength(0);
	await waitFor(
		() => mailsTo(owner.email).some(({ subject }) => /password/i.test(subject)),
		"the mail that tells of it",
	);
});

const act = async (person: Person) =>
	(await person.send("POST", "/api/console/keys", { name: crypto.randomUUID() })).status;
const again = async (person: Person) =>
	(await person.send("POST", "/api/console/reauthenticate", { password: PASSWORD })).status;

for (const apart of [-60, 60])
	test(`a password entry is valid for 15 minutes if the console's clock is ${apart} min off`, async () => {
		setApart(apart);
		const person = await signedUp(service);
		setApart(16);
		expect(await act(person)).toBe(403);
		expect(await again(person)).toBe(200);
		expect(await act(person)).toBe(200);
		setApart(16);
		expect(await act(person)).toBe(403);
	});

test("sessions and mailed links keep their lifetime although Postgres's clock is ahead", async () => {
	const { person, secret } = await withFactor();
	setApart(-120);
	const browser = newPerson(service, person.email);
	await post(browser, "sign-in/email", { email: person.email, password: PASSWORD });
	await post(person, "request-password-reset", { email: person.email });
	await deleteUnverifiedPeople(service.db.statements, Date.now());
	expect((await post(browser, "two-factor/verify-totp", { code: totpCode(secret) })).status).toBe(200);
	const token = new URL(await mailedLink(person)).searchParams.get("token");
	const newPassword = "another good one, long enough";
	expect((await post(newPerson(service), "reset-password", { token, newPassword })).status).toBe(200);

	setApart(-8 * 24 * 60);
	const late = await signedUp(service);
	await deleteOldSessions(service.db.statements, Date.now());
	expect((await late.get("/api/console/me")).status).toBe(200);
	const { items } = (await late.get("/api/console/sessions")).body;
	expect(items).toEqual([expect.objectContaining({ current: true })]);
});

test("an expired challenge is deleted once both clocks are past its expiry", async () => {
	const { person } = await withFactor();
	await post(newPerson(service, person.email), "sign-in/email", { email: person.email, password: PASSWORD });
	await sql`update verification set expires_at = clock_timestamp() - interval '1 minute'`;
	await sql`update session set expires_at = clock_timestamp() - interval '1 minute'`;
	await deleteUnverifiedPeople(service.db.statements, Date.now());
	await deleteOldSessions(service.db.statements, Date.now());
	for (const table of ["verification", "session"]) expect(await sql.unsafe(`select 1 from ${table}`)).toHaveLength(0);
});
