import { expect, test } from "bun:test";
import { createOperator } from "../../src/console/operator/operator-admin.ts";
import { MAIL_ENV, mailsTo, newMail } from "../console/mailbox.ts";
import { newPerson, PASSWORD, PERSON_ENV } from "../console/person.ts";
import { openRaw, parseRaw } from "../support/raw-http.ts";
import { waitFor } from "../support/wait.ts";
import { withConsole } from "./product.ts";

/** Only a mail's recipient can read it, and its links lead to this service, whatever headers a request has. */

const silent = await withConsole({ TRUSTED_PROXIES: "127.0.0.1" });
const mailing = await withConsole(PERSON_ENV);

test("the console shows no page of sent mails if it has no mail server", async () => {
	const boss = newPerson(silent);
	await createOperator(silent.db.statements, boss.email);
	const asked = await boss.send("POST", "/api/auth/request-password-reset", { email: boss.email });
	expect(asked.status).toBeLessThan(500);
	const { port } = new URL(silent.url);
	for (const host of ["attacker.example", `localhost:${port}`, `127.0.0.1:${port}`]) {
		const head = `GET /api/console/public/outbox?email=${encodeURIComponent(boss.email)} HTTP/1.1\r\nHost: ${host}\r\n`;
		const client = await openRaw(silent.url, `${head}Connection: close\r\n\r\n`);
		expect([host, parseRaw(await client.ended()).status]).toEqual([host, 404]);
	}
	const up = { name: "Eve", email: "eve@example.com", password: PASSWORD };
	expect((await newPerson(silent).send("POST", "/api/auth/sign-up/email", up)).status).toBe(400);
	await waitFor(
		() => silent.serve.lines.some(({ message }) => message.startsWith("SMTP_URL is not set: no mail is sent")),
		"the log to say that there is no mail",
	);
	// The log contains no part of the mails.
	const [row] = await silent.db
		.sql`select identifier from verification where identifier like 'reset-password:%' limit 1`;
	const token = String(row?.identifier).split(":")[1] ?? "";
	expect(token.length).toBeGreaterThan(10);
	expect(JSON.stringify(silent.serve.lines)).not.toContain(token);
});

test("links in mails lead to this service", async () => {
	const person = newPerson(mailing);
	const lies = {
		host: "attacker.example",
		"x-forwarded-host": "attacker.example",
		"x-forwarded-proto": "https",
		forwarded: "host=attacker.example",
	};
	const known = newPerson(mailing);
	await createOperator(mailing.db.statements, known.email);
	const up = (email: string) => ({ name: "Ann", email, password: PASSWORD });
	const answers = [
		await person.send("POST", "/api/auth/sign-up/email", up(person.email), lies),
		await person.send("POST", "/api/auth/sign-up/email", up(known.email), lies),
		await person.send("POST", "/api/auth/request-password-reset", { email: known.email }, lies),
	];
	expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
	const mails = () => [...mailsTo(person.email), ...mailsTo(known.email)];
	await waitFor(() => mails().length === 3, "all mails");
	for (const { text, head } of mails()) {
		const links = text.match(/https?:\/\/\S+/g) ?? [];
		expect(links.map((link) => new URL(link).origin)).toEqual([mailing.url]);
		expect(text + head).not.toContain("attacker.example");
	}
});

test("a return URL of another site is refused or left out of the mail", async () => {
	const away = "https://attacker.example/";
	for (const back of [away, "//attacker.example", "/\\attacker.example", "https:attacker.example"]) {
		const person = newPerson(mailing);
		const up = { name: "Ann", email: person.email, password: PASSWORD, callbackURL: back, next: back };
		const { status } = await person.send("POST", "/api/auth/sign-up/email", up);
		if (status === 200) {
			const { text } = await newMail(person.email);
			expect([back, text.includes("attacker")]).toEqual([back, false]);
		} else expect([back, status]).toEqual([back, 403]);
	}
	expect(MAIL_ENV.SMTP_URL).toStartWith("smtp://127.0.0.1");
});
