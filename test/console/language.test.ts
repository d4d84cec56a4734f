import { expect, test } from "bun:test";
import { server } from "../../src/base/de.json";
import { requestLanguage } from "../../src/base/language.ts";
import { chatModel, withService } from "../support/service.ts";
import { newMail } from "./mailbox.ts";
import { newPerson, PASSWORD, PERSON_ENV, signedUp } from "./person.ts";

const asked = (headers: Record<string, string>) => requestLanguage(new Headers(headers));

test("a reader gets the chosen language, else the browser's first, else English", () => {
	const cases: readonly (readonly [Record<string, string>, string])[] = [
		[{}, "en"],
		[{ "accept-language": "de" }, "de"],
		[{ "accept-language": "de-AT,de;q=0.9,en;q=0.8" }, "de"],
		[{ "accept-language": "fr-FR, fr;q=0.9, de;q=0.5, en;q=0.4" }, "de"],
		[{ "accept-language": "en-GB,en;q=0.9,de;q=0.8" }, "en"],
		[{ "accept-language": "de;q=0, en;q=0.1" }, "en"],
		[{ "accept-language": "de;q=0" }, "en"],
		[{ "accept-language": "*, de;q=0.5" }, "en"],
		[{ "accept-language": "DE;Q=0.9;x=1" }, "de"],
		[{ "accept-language": "de;q=much, constructor, , ;;=" }, "en"],
		[{ "accept-language": `${"xx,".repeat(30)}de` }, "en"],
		[{ "accept-language": "en", cookie: "a=b; tollgate.language=de; c=d" }, "de"],
		[{ "accept-language": "de", cookie: "tollgate.language=en" }, "en"],
		[{ "accept-language": "de", cookie: "tollgate.language=toString" }, "de"],
		[{ "accept-language": "de", cookie: "xtollgate.language=en" }, "de"],
	];
	for (const [headers, language] of cases) expect([headers, asked(headers)]).toEqual([headers, language as "en"]);
});

const service = await withService({ models: chatModel({ id: "echo", url: "http://127.0.0.1:9" }), env: PERSON_ENV });

test("the document names its language and loads German texts only if it is German", async () => {
	const pageIn = async (language: string) => {
		const response = await fetch(`${service.url}/sign-in`, { headers: { "accept-language": language } });
		return { headers: response.headers, html: await response.text() };
	};
	const [german, english] = [await pageIn("de"), await pageIn("nl")];
	expect(german.html).toContain('<html lang="de">');
	expect(german.html).toContain("Die Konsole braucht JavaScript.");
	expect(english.html).toContain('<html lang="en">');
	expect(english.html).not.toContain("german");
	expect([german.headers.get("content-language"), english.headers.get("content-language")]).toEqual(["de", "en"]);
	expect(german.headers.get("vary")).toContain("accept-language, cookie");
	const scripts = [...german.html.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, address = ""]) => address);
	const at = scripts.findIndex((address) => /^\/assets\/german-texts-\w+\.js$/.test(address));
	expect(at).toBeGreaterThanOrEqual(0);
	expect(at).toBeLessThan(scripts.findIndex((address) => /^\/assets\/index-/.test(address)));
	const texts = await fetch(service.url + scripts[at]);
	expect(texts.headers.get("cache-control")).toContain("immutable");
	expect(await texts.text()).toContain("Schlüssel anlegen");
});

test("mails are in the recipient's language: first the browser's, then the setting", async () => {
	const person = newPerson(service);
	const german = { "accept-language": "de-DE" };
	const signUp = { name: "Anna", email: person.email, password: PASSWORD };
	await person.send("POST", "/api/auth/sign-up/email", signUp, german);
	const asked = await newMail(person.email);
	expect(asked.text).toContain("innerhalb von 24 Stunden");
	const token = new URL(/\S+\/verify\?\S+/.exec(asked.text)?.[0] ?? "").searchParams.get("token");
	await person.send("POST", "/api/auth/verify-email", { token }, german);
	expect((await person.get("/api/console/me")).body.user.language).toBe("de");
	// The request is in English, but the mail must be in the recipient's language.
	const reset = () =>
		newPerson(service).send("POST", "/api/auth/request-password-reset", { email: person.email, redirectTo: "/reset" });
	await reset();
	expect((await newMail(person.email)).text).toContain("um ein neues Passwort festzulegen");
	expect((await person.send("PUT", "/api/console/language", { language: "en" }, german)).status).toBe(200);
	await reset();
	expect((await newMail(person.email)).text).toContain("to set a new password");
	expect((await person.send("PUT", "/api/console/language", { language: "toString" })).status).toBe(400);
	expect((await (await signedUp(service)).get("/api/console/me")).body.user.language).toBe(null);
});

test("errors are in the reader's language, and in English for programs", async () => {
	const person = await signedUp(service);
	const german = { "accept-language": "de" };
	const inGerman = async (method: "POST" | "PUT", path: string, body: object) => {
		const { status, body: answer } = await person.send(method, path, body, german);
		return [status, answer.error?.message ?? answer.message, answer.error?.code ?? answer.code];
	};
	const wrong = { email: person.email, password: "wrong and long enough" };
	expect(await inGerman("POST", "/api/auth/sign-in/email", wrong)).toEqual([
		401,
		"E-Mail-Adresse oder Passwort ist falsch.",
		"INVALID_EMAIL_OR_PASSWORD",
	]);
	const common = { ...wrong, name: "Anna", email: "anna@common.example", password: "passwordpassword" };
	expect((await inGerman("POST", "/api/auth/sign-up/email", common))[1]).toStartWith(
		"Dieses Passwort ist leicht zu erraten",
	);
	const topUp = "/api/console/credit/top-ups/transfer";
	expect(await inGerman("POST", topUp, { usd: "1" })).toEqual([
		400,
		"Eine Aufladung beträgt mindestens USD 100.",
		"invalid_request",
	]);
	expect((await inGerman("POST", topUp, {}))[1]).toBe("Ein Feld fehlt oder ist fehlerhaft.");
	const again = await inGerman("POST", "/api/console/reauthenticate", { password: "wrong" });
	expect(again[1]).toBe("Das Passwort ist falsch.");
	const member = await inGerman("POST", "/api/console/invitations", { email: "nobody", role: "viewer" });
	expect(member[1]).toBe("Geben Sie eine gültige E-Mail-Adresse ein.");
	expect((await inGerman("POST", "/api/console/keys", { name: "a", capUsd: "-1" }))[1]).toBe(
		"Geben Sie einen Betrag in US-Dollar ein, zum Beispiel 25.00.",
	);
	expect((await inGerman("POST", "/api/console/no-such", {}))[1]).toBe("Diese Seite gibt es nicht.");
	const stranger = await newPerson(service).get("/api/console/me", { headers: german });
	expect(stranger.body.error.message).toBe("Bitte melden Sie sich an.");
	// The gateway creates this error, and translates it by itself.
	const { key } = (await person.send("POST", "/api/console/keys", { name: "a" })).body;
	const chat = { model: "none", messages: [{ role: "user", content: "a" }] };
	expect(await inGerman("POST", `/api/console/playground/chat?key=${key.id}`, chat)).toEqual([
		402,
		"Für die API braucht es mindestens eine bestätigte Aufladung von USD 100 oder mehr.",
		"top_up_required",
	]);
	expect((await person.send("POST", topUp, { usd: "1" })).body.error.message).toBe("A top-up is at least USD 100.");
	const program = await fetch(`${service.url}/v1/models`, { headers: { ...german, authorization: "Bearer no" } });
	expect(((await program.json()) as { error: { message: string } }).error.message).toContain(
		"The API key is not valid",
	);
});

test("receipts, statements and status are translated, but not the data in them", async () => {
	const person = await signedUp(service);
	const { topUp } = (await person.send("POST", "/api/console/credit/top-ups/transfer", { usd: "1234.5" })).body;
	const asked = async (path: string, language: string, accept = "text/html") => {
		const answer = await person.fetch(path, { headers: { accept, "accept-language": language } });
		expect([path, answer.status]).toEqual([path, 200]);
		return { headers: answer.headers, text: Buffer.from(await answer.arrayBuffer()).toString("latin1") };
	};
	const receipt = `/api/console/credit/receipts/${topUp.id}`;
	expect((await asked(receipt, "en")).text).toContain("USD 1234.5");
	const german = await asked(receipt, "de");
	expect(german.headers.get("content-language")).toBe("de");
	for (const part of ['<html lang="de">', "Belegnummer", "USD 1234,5", "Offen: noch nicht bezahlt"])
		expect(german.text).toContain(part);
	const month = new Date().toISOString().slice(0, 7);
	for (const language of ["en", "de"])
		expect((await asked(`/api/console/credit/statement.pdf?month=${month}`, language)).text).toContain(
			`/Lang (${language})`,
		);
	for (const [language, title] of [
		["en", "Statement"],
		["de", "Auszug"],
	] as const)
		expect((await asked(`/api/console/credit/statement?month=${month}`, language)).text).toContain(`<br>${title} `);
	const csv = `/api/console/credit/statement.csv?month=${month}`;
	expect((await asked(csv, "de")).text).toBe((await asked(csv, "en")).text);
	// The status page is cached for a second: each language must have its own cache entry.
	for (const language of ["en", "de", "en", "de"]) {
		const page = await asked("/status", language);
		expect(page.text).toContain(`<html lang="${language}">`);
		expect(page.headers.get("vary")).toContain("accept-language, cookie");
		const has = (id: string) => page.text.includes(Buffer.from(id).toString("latin1"));
		for (const id of [
			...(["How to read this", "All services and models", "Down for most of the day", "Overall"] as const),
			...(["As of {time}.", "Service status", "No data"] as const),
		]) {
			const [english = "", german = ""] = [id, server[id]].map((text) => text.replace("{time}.", ""));
			expect([id, has(english), has(german)]).toEqual([id, language === "en", language === "de"]);
		}
		// Observations begin in the middle of a minute, so the page may have no history yet.
		expect(has(language === "de" ? "no data yet" : server["no data yet"])).toBe(false);
	}
	expect(JSON.parse((await asked("/status", "de", "application/json")).text).services.chat).toBe("unavailable");
});
