import { expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { mailsTo } from "../console/mailbox.ts";
import { mailedLink, newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { STEP_MS, totpCode, turnOnTwoFactor } from "../console/totp.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { passwordHashes } from "../support/password-hashes.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

/** Guessing passwords and codes from many addresses, and the effect on the account's owner. */

const { service } = await withChat({ env: PERSON_ENV });

const signIn = (browser: Person, password: string, email = browser.email) =>
	browser.send("POST", "/api/auth/sign-in/email", { email, password });
const post = (browser: Person, act: string, body: object) => browser.send("POST", `/api/auth/two-factor/${act}`, body);
const me = async (browser: Person) => (await browser.get("/api/console/me")).status;
const elsewhere = ({ email }: Person) => newPerson(service, email);
const timePasses = () => service.db.sql`update rate_count set started_at = started_at - interval '61 minutes'`;
/** Sets counts to 0 but keeps their rows: the library answers 500 if a row disappears between its two reads. */
const limitsByAddressPass = () => service.db.sql`update rate_limit set count = 0`;

async function withFactor() {
	const person = await signedUp(service);
	return { person, ...(await turnOnTwoFactor(person)) };
}
const wrongFor = (secret: string, nth: number) => {
	const right = [-1, 0, 1, 2].map((step) => totpCode(secret, Date.now() + step * STEP_MS));
	let code = nth;
	while (right.includes(String(code).padStart(6, "0"))) code += 1_000;
	return String(code).padStart(6, "0");
};

test("a sign-in challenge accepts five guesses of its code from all addresses together", async () => {
	const { person, secret, next } = await withFactor();
	const thief = elsewhere(person);
	await signIn(thief, PASSWORD);
	const guesses = await Promise.all(
		Array.from({ length: 40 }, (_, nth) => {
			const helper = elsewhere(person);
			for (const [name, value] of thief.cookies) helper.cookies.set(name, value);
			return post(helper, "verify-totp", { code: wrongFor(secret, nth) });
		}),
	);
	expect(guesses.filter(({ body }) => body.code === "INVALID_CODE").length).toBeLessThanOrEqual(5);
	expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401, 429]));
	expect((await post(thief, "verify-totp", { code: next() })).status).not.toBe(200);
	expect(await me(thief)).toBe(401);
	const { sql } = service.db;
	const [left] = await sql`select count(*)::int as n from verification where identifier like '2fa-%'`;
	expect(left?.n).toBe(0);
});

test("all challenges of a person together accept ten guesses of a code per hour", async () => {
	const { person, secret, codes, next } = await withFactor();
	const statuses: number[] = [];
	for (let nth = 0; nth < 15; nth++) {
		const thief = elsewhere(person);
		await signIn(thief, PASSWORD);
		const body = nth % 2 === 0 ? { code: wrongFor(secret, nth) } : { code: `wrong-${nth}` };
		statuses.push((await post(thief, nth % 2 === 0 ? "verify-totp" : "verify-backup-code", body)).status);
	}
	expect(statuses).toEqual([...Array(10).fill(401), ...Array(5).fill(429)]);
	await waitFor(
		() => mailsTo(person.email).filter(({ text }) => text.includes("several wrong two-factor codes")).length === 1,
		"the one mail that warns",
	);
	// From an unknown browser, even the correct code is now refused. The person's own browser has a separate count.
	const stranger = elsewhere(person);
	await signIn(stranger, PASSWORD);
	expect((await post(stranger, "verify-backup-code", { code: codes[0] })).status).toBe(429);
	await person.send("POST", "/api/auth/sign-out");
	await signIn(person, PASSWORD);
	expect((await post(person, "verify-totp", { code: next() })).status).toBe(200);
	expect(await me(person)).toBe(200);
});

test("a sign-in code is valid only once", async () => {
	const { person, used, codes, next } = await withFactor();
	// The code that confirmed the set-up counts as used.
	const late = elsewhere(person);
	await signIn(late, PASSWORD);
	expect((await post(late, "verify-totp", { code: used })).status).toBe(401);
	const browsers = [elsewhere(person), elsewhere(person), elsewhere(person), elsewhere(person)];
	await Promise.all(browsers.map((browser) => signIn(browser, PASSWORD)));
	const code = next();
	const all = await Promise.all(browsers.map((browser) => post(browser, "verify-totp", { code })));
	expect(all.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401]);
	expect((await post(person, "disable", { password: PASSWORD, code })).status).toBe(401);
	await timePasses();
	await limitsByAddressPass();
	const thieves = await Promise.all(
		[0, 1, 2].map(async () => {
			const browser = elsewhere(person);
			await signIn(browser, PASSWORD);
			return browser;
		}),
	);
	const backups: number[] = [];
	const { sql } = service.db;
	const spending = await sql.begin(async (held) => {
		// Makes all requests read the list of backup codes before any of them removes the code.
		await held`select from two_factor for update`;
		const all = thieves.map(async (browser) => {
			backups.push((await post(browser, "verify-backup-code", { code: codes[1] })).status);
		});
		await waitFor(async () => backups.length + (await lockWaits(sql)) >= thieves.length, "all to have looked");
		return { all };
	});
	await Promise.all(spending.all);
	expect(backups.filter((status) => status === 200)).toHaveLength(1);
	for (const odd of [` ${next()}`, `${next()} `, "１２３４５６", "", "0", [next()], { code: next() }])
		expect((await post(late, "verify-totp", { code: odd })).status).toBeGreaterThanOrEqual(400);
});

test("wrong passwords block unknown browsers, but not a browser known to the owner", async () => {
	const person = await signedUp(service);
	const { sql } = service.db;
	await person.send("POST", "/api/auth/sign-out");
	// The eleventh guess from an address is refused by the address's limit and does not count against the account.
	const one = elsewhere(person);
	const statuses: number[] = [];
	for (let nth = 0; nth < 12; nth++) {
		await limitsByAddressPass();
		statuses.push((await signIn(one, nth === 11 ? PASSWORD : `wrong password ${nth}`)).status);
	}
	expect(statuses).toEqual([...Array(10).fill(401), 429, 429]);
	const lines = service.logged.filter(({ message }) => message === "a sign-in was refused");
	const codes = lines.map(({ code }) => code).slice(-12);
	expect(codes).toEqual([...Array(10).fill("INVALID_EMAIL_OR_PASSWORD"), "TOO_MANY_ATTEMPTS", "TOO_MANY_ATTEMPTS"]);
	expect(lines.at(-1)?.address).toStartWith("10.0.");
	expect(JSON.stringify(service.logged)).not.toMatch(/@example\.com|wrong password/);
	expect((await signIn(elsewhere(person), PASSWORD)).status).toBe(200);
	// Sets the count as if a hundred addresses had guessed.
	await sql`update rate_count set count = 100 where key like 'passwords of person:%'`;
	const stranger = elsewhere(person);
	for (const email of [person.email, person.email.toUpperCase()])
		expect((await signIn(stranger, PASSWORD, email)).status).toBe(429);
	expect((await signIn(person, PASSWORD)).status).toBe(200);

	const newBrowser = elsewhere(person);
	await newBrowser.send("POST", "/api/auth/request-password-reset", { email: person.email });
	const token = new URL(await mailedLink(person)).searchParams.get("token");
	const newPassword = "a new password of the owner";
	expect((await newBrowser.send("POST", "/api/auth/reset-password", { newPassword, token })).status).toBe(200);
	expect((await signIn(newBrowser, newPassword)).status).toBe(200);
	expect(await me(newBrowser)).toBe(200);
});

test("a browser known to one person gets no extra guesses at another person's password", async () => {
	const [person, other] = [await signedUp(service), await signedUp(service)];
	await service.db.sql`
		insert into rate_count (key, count, started_at)
		values (${`passwords of person:${new Bun.CryptoHasher("sha256").update(person.email).digest("hex")}`}, 100, now())`;
	expect((await signIn(other, PASSWORD, person.email)).status).toBe(429);
	// A device cookie that is forged or signed for another person is invalid.
	const device = [...other.cookies].find(([name]) => name.endsWith(".device"));
	expect(device).toBeDefined();
	const [name = "", value = ""] = device ?? [];
	const [row] = await service.db.sql`select id from console_user where email = ${person.email}`;
	const forged = elsewhere(person);
	forged.cookies.set(name, value.replace(/~[^.]*\./, `~${row?.id}.`));
	expect((await signIn(forged, PASSWORD)).status).toBe(429);
	const own: number[] = [];
	for (let nth = 0; nth < 11; nth++) {
		await limitsByAddressPass();
		own.push((await signIn(person, `wrong password ${nth}`)).status);
	}
	expect(own).toEqual([...Array(10).fill(401), 429]);
});

test("only ten of many concurrent guesses of a password are checked", async () => {
	const person = await signedUp(service);
	const browser = elsewhere(person);
	const rounds = await Promise.all(
		Array.from({ length: 8 }, async (_, nth) => {
			await limitsByAddressPass();
			return Promise.all([0, 1, 2].map((at) => signIn(browser, `wrong ${nth} ${at}`)));
		}),
	);
	const answers = rounds.flat();
	expect(answers.filter(({ status }) => status !== 401 && status !== 429).map(({ body }) => body)).toEqual([]);
	expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(10);
});

test.each([
	{ networks: 1, most: 1 },
	{ networks: 8, most: Math.max(1, availableParallelism() - 1) },
])("passwords from $networks networks leave a processor free", async ({ networks, most }) => {
	const person = await signedUp(service);
	Object.assign(passwordHashes, { most: 0, minMs: 20 });
	const guesses = Array.from({ length: networks }, () => elsewhere(person)).flatMap((stranger) => [
		...Array.from({ length: 3 }, () => signIn(stranger, "a wrong password", `${crypto.randomUUID()}@example.com`)),
		signIn(stranger, PASSWORD),
	]);
	const owns = networks === 1 ? [] : [person.send("POST", "/api/console/reauthenticate", { password: PASSWORD })];
	const statuses = (await Promise.all([...guesses, ...owns])).map(({ status }) => status);
	passwordHashes.minMs = 0;
	expect(new Set(statuses)).toEqual(new Set([401, 200]));
	expect(passwordHashes.most).toBeLessThanOrEqual(most);
});
