import { expect, test } from "bun:test";
import { mailsTo } from "../console/mailbox.ts";
import { mailedLink, newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { turnOnTwoFactor } from "../console/totp.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

/** A thief who has the password or a session tries to remove the second factor, or races the owner's changes. */

const { service } = await withChat({ env: PERSON_ENV });

const NEW_PASSWORD = "a new password of the owner";
const auth = (browser: Person, act: string, body: object) => browser.send("POST", `/api/auth/${act}`, body);
const signIn = (browser: Person, password: string) =>
	auth(browser, "sign-in/email", { email: browser.email, password });
const me = async (browser: Person) => (await browser.get("/api/console/me")).status;
const elsewhere = ({ email }: Person) => newPerson(service, email);
const told = (person: Person, words: string) =>
	waitFor(() => mailsTo(person.email).some(({ text }) => text.includes(words)), `a mail that says ${words}`);
const limitsPass = async () => {
	await service.db.sql`delete from rate_limit`;
	await service.db.sql`delete from rate_count`;
};

test("a change of the second factor ends all other sessions of the person", async () => {
	const person = await signedUp(service);
	const thief = elsewhere(person);
	await signIn(thief, PASSWORD);
	const { next } = await turnOnTwoFactor(person);
	expect([await me(person), await me(thief)]).toEqual([200, 401]);
	await told(person, "Two-factor authentication was turned on");
	const off = await auth(person, "two-factor/disable", { password: PASSWORD, code: next() });
	expect(off.status).toBe(200);
	await told(person, "was turned off");
	expect((await person.get("/api/console/me")).body.user.twoFactorEnabled).toBe(false);
});

test("a thief with session and password cannot remove the second factor", async () => {
	const person = await signedUp(service);
	const { codes, next } = await turnOnTwoFactor(person);
	const isOn = async () => (await person.get("/api/console/me")).body.user.twoFactorEnabled;
	for (const act of ["disable", "generate-backup-codes"])
		for (const body of [
			{ password: PASSWORD },
			{ password: PASSWORD, code: "" },
			{ password: PASSWORD, code: "not-a-code" },
			{ password: PASSWORD, code: [codes[0]] },
			{ password: "wrong password of a thief", code: codes[0] },
			{ code: codes[0] },
		]) {
			await limitsPass();
			const answer = await auth(person, `two-factor/${act}`, body);
			expect([act, body, answer.status >= 400 && answer.status < 500]).toEqual([act, body, true]);
			expect(JSON.stringify(answer.body)).not.toContain("backupCodes");
		}
	await limitsPass();
	// Tries to get a new secret, the current secret, and codes by mail.
	expect((await auth(person, "two-factor/enable", { password: PASSWORD })).body.code).toBe("TWO_FACTOR_ENABLED");
	for (const act of ["get-totp-uri", "send-otp", "verify-otp", "view-backup-codes"])
		expect((await auth(person, `two-factor/${act}`, { password: PASSWORD, code: "123456" })).status).toBe(404);
	const profile = await auth(person, "update-user", { twoFactorEnabled: false, emailVerified: false, operator: true });
	expect([profile.status < 500, await isOn()]).toEqual([true, true]);
	expect((await person.get("/api/console/me")).body.user.operator).toBe(false);
	// An owner without a phone can do all of these with an unused backup code.
	await limitsPass();
	const anew = await auth(person, "two-factor/generate-backup-codes", { password: PASSWORD, code: next() });
	expect(anew.body.backupCodes).toHaveLength(10);
	await told(person, "New backup codes");
	const former = await auth(person, "two-factor/disable", { password: PASSWORD, code: codes[0] });
	expect(former.status).toBe(401);
	const off = await auth(person, "two-factor/disable", { password: PASSWORD, code: anew.body.backupCodes[0] });
	expect([off.status, await isOn()]).toEqual([200, false]);
});

test("a new password ends trust in browsers, unfinished sign-ins and mailed links", async () => {
	const person = await signedUp(service);
	const { next } = await turnOnTwoFactor(person);
	const trusted = elsewhere(person);
	await signIn(trusted, PASSWORD);
	await auth(trusted, "two-factor/verify-totp", { code: next(), trustDevice: true });
	expect(await me(trusted)).toBe(200);
	const half = elsewhere(person);
	await signIn(half, PASSWORD);
	await auth(elsewhere(person), "request-password-reset", { email: person.email });
	const first = new URL(await mailedLink(person)).searchParams.get("token");
	const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD, revokeOtherSessions: false };
	expect((await auth(person, "change-password", change)).status).toBe(200);
	await told(person, "Your password was changed");
	expect([await me(person), await me(trusted)]).toEqual([200, 401]);
	const late = await auth(half, "two-factor/verify-backup-code", { code: "whatever" });
	expect(late.body.code).toBe("INVALID_TWO_FACTOR_COOKIE");
	const reset = await auth(elsewhere(person), "reset-password", { newPassword: NEW_PASSWORD, token: first });
	expect(reset.status).toBe(400);
	expect((await signIn(trusted, NEW_PASSWORD)).body.twoFactorRedirect).toBe(true);
	expect(await me(trusted)).toBe(401);
});

test("a sign-in that overlaps a change of its password fails", async () => {
	const person = await signedUp(service);
	await auth(person, "request-password-reset", { email: person.email });
	const token = new URL(await mailedLink(person)).searchParams.get("token");
	let isReset = false;
	const thieves: Person[] = [];
	const reset = auth(person, "reset-password", { newPassword: NEW_PASSWORD, token }).finally(() => {
		isReset = true;
	});
	await Promise.all(
		Array.from({ length: 4 }, async () => {
			while (!isReset && thieves.length < 60) {
				const thief = elsewhere(person);
				thieves.push(thief);
				await signIn(thief, PASSWORD);
			}
		}),
	);
	expect((await reset).status).toBe(200);
	expect(thieves.length).toBeGreaterThan(3);
	expect(await Promise.all(thieves.map(me))).toEqual(thieves.map(() => 401));
	await told(person, "Your password was changed");
});

test("common passwords are refused wherever a password is set", async () => {
	const bad = "Password2026!";
	const fresh = newPerson(service);
	const up = (password: string) => auth(fresh, "sign-up/email", { name: "Ann", email: fresh.email, password });
	expect((await up(bad)).body.code).toBe("PASSWORD_TOO_COMMON");
	expect((await up(fresh.email)).body.code).toBe("PASSWORD_TOO_COMMON");
	await up(PASSWORD);
	const token = new URL(await mailedLink(fresh)).searchParams.get("token");
	const other = elsewhere(fresh);
	const verify = (newPassword: string) => auth(other, "verify-email", { token, name: "Ann", newPassword });
	expect((await verify(bad)).body.code).toBe("PASSWORD_TOO_COMMON");
	expect((await verify(PASSWORD)).status).toBe(200);
	await signIn(other, PASSWORD);
	const change = await auth(other, "change-password", { currentPassword: PASSWORD, newPassword: bad });
	expect(change.body.code).toBe("PASSWORD_TOO_COMMON");
	await auth(other, "request-password-reset", { email: fresh.email });
	const reset = { token: new URL(await mailedLink(fresh)).searchParams.get("token") };
	expect((await auth(other, "reset-password", { ...reset, newPassword: bad })).body.code).toBe("PASSWORD_TOO_COMMON");
	expect((await auth(other, "reset-password", { ...reset, newPassword: NEW_PASSWORD })).status).toBe(200);
});
