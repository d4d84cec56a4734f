import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BASE_ERROR_CODES } from "better-auth";
import { TWO_FACTOR_ERROR_CODES } from "better-auth/plugins";
import { CreditFault } from "../../../src/admission/credit-fault.ts";
import { pages, server, signIn } from "../../../src/base/de.json";
import type { Language } from "../../../src/base/language.ts";
import { passedBody } from "../../../src/base/passed-body.ts";
import { RIGHTS, ROLE_LABELS } from "../../../src/console/members/roles.ts";
import { answerIn, BODY_CHARS_MAX, toldIn } from "../../../src/console/texts/told-in.ts";
import { failuresIn } from "../../../src/console/texts/told-stream.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { faultTexts } from "../../support/fault-texts.ts";

const SOURCE = join(import.meta.dir, "../../../src");
const german = (message: string) => toldIn("de", message);
const files = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: SOURCE })].sort();

/** Read by programs and operators' terminals alone: what is thrown there has no reader whose language were known. */
const FOR_PROGRAMS =
	/^(console\/management|console\/brand|billing\/stripe-events|keys\/bearer|keys\/failed-attempts|db\/(embedded|function-set|granted-|migrate|own-|postgres-|reachable-|server-|way)|ledger|cluster)/;

describe("what the console refuses with", () => {
	test("has German wherever it is thrown: in the rooms below, by the database's functions and by the library of sign-in", () => {
		const thrown = ["console", "billing", "keys", "files", "batch", "db", "limits", "money"]
			.flatMap((room) => files(`${room}/**/*.ts`))
			.filter((path) => !FOR_PROGRAMS.test(path))
			.flatMap((path) =>
				faultTexts(path, readFileSync(join(SOURCE, path), "utf8")).map((text) => [path, text] as const),
			);
		expect(thrown.length).toBeGreaterThan(120);
		const raised = files("db/functions/*.sql").flatMap((path) =>
			[
				...readFileSync(join(SOURCE, path), "utf8").matchAll(/raise exception '([^']+)'[^;]*errcode = 'TG00[245]'/g),
			].map(([, text = ""]) => [path, text.replaceAll("%", "x1")] as const),
		);
		expect(raised.length).toBeGreaterThan(15);
		const checks = [
			...readFileSync(join(SOURCE, "db/functions/books-check.sql"), "utf8").matchAll(/^ {4}\('((?:[^']|'')+)'\),?$/gm),
		].map(([, name = ""]) => ["books-check.sql", name.replaceAll("''", "'")] as const);
		expect(checks.length).toBeGreaterThan(10);
		const library = [...Object.values(BASE_ERROR_CODES), ...Object.values(TWO_FACTOR_ERROR_CODES)].map(
			({ code }) => code as string,
		);
		expect(library.filter((code) => !Object.hasOwn(signIn, code))).toEqual([]);
		expect(Object.keys(signIn).filter((code) => !library.includes(code))).toEqual([]);
		expect([...thrown, ...raised, ...checks].filter(([, text]) => german(text) === undefined)).toEqual([]);
	});

	test("so has what a check of the books found, with what is wrong at that place", () => {
		const functions = readFileSync(join(SOURCE, "db/functions/books-check.sql"), "utf8");
		const problems = [...functions.matchAll(/(?:return (?:format\()?|then )'((?:[a-z%]|its)[^']+ [^']+)'/g)].map(
			([, text = ""]) => text.replaceAll("%s", "7"),
		);
		expect(problems.length).toBe(6);
		const told = problems.map((problem) => german(`broken 2 times, first at 2026-11-24 ${problem}`) ?? "");
		expect(told.filter((text) => !/^2-mal verletzt, zuerst bei 2026-11-24: /.test(text))).toEqual([]);
	});

	test("stands once, with the values of its English, and says something else", () => {
		const text = readFileSync(join(SOURCE, "base/de.json"), "utf8");
		const count = Object.keys({ ...pages }).length + Object.keys(server).length + Object.keys(signIn).length;
		expect(text.match(/^\t\t"/gm)?.length).toBe(count);
		const marks = (text: string) => (text.match(/\{\w+\}|`[^`]*`/g) ?? []).sort();
		for (const [english, text] of Object.entries(server)) {
			expect([english, marks(text)]).toEqual([english, marks(english)]);
			expect(text).not.toBe(english);
		}
	});

	test("has its values in it, in the language too where they are words", () => {
		expect(german("There is no top-up tu_1.")).toBe("Es gibt keine Aufladung tu_1.");
		expect(german("The top-up is confirmed: it cannot be cancelled.")).toBe(
			"Die Aufladung ist bestätigt und kann nicht abgebrochen werden.",
		);
		expect(german("There is no TXT record $& with this text yet. DNS may take some minutes.")).toContain(" $& ");
		for (const role of Object.values(ROLE_LABELS))
			for (const { says } of Object.values(RIGHTS)) {
				const said = german(`Your role in this account (${role}) may not ${says}.`) ?? "";
				expect(said).not.toContain(says);
				expect(said).toStartWith("Ihre Rolle in diesem Konto (");
			}
		expect(german("The project of this key may run 3 requests at once.")).toBe(
			"Das Projekt dieses Schlüssels kann 3 Anfragen gleichzeitig ausführen.",
		);
		const short = { requiredNanoUsd: nanoUsd(2), availableNanoUsd: nanoUsd(1), heldNanoUsd: nanoUsd(0) };
		for (const affordableMaxTokens of [null, 12])
			for (const renewsAtMs of [null, 0]) {
				const { message } = new CreditFault("key_cap_exceeded", { ...short, affordableMaxTokens }, renewsAtMs);
				expect(german(message)).toStartWith(
					"Die Obergrenze dieses Schlüssels deckt die Anfrage nicht. Die Anfrage kann",
				);
			}
	});

	test("days and moments in it are as Germans write them", () => {
		expect(german("The cap begins anew at 2026-12-01T00:00:00.000Z.")).toBe(
			"Die Obergrenze beginnt am 01.12.2026 um 00:00 Uhr (UTC) neu.",
		);
		expect(german("The model `a-2026-11-22` was retired on 2026-11-22: see GET /v1/models.")).toBe(
			"Das Modell `a-2026-11-22` wurde am 22.11.2026 abgeschaltet: siehe GET /v1/models.",
		);
	});

	test("is German in a stream too, wherever it is cut, and nothing else of it is touched or waits", async () => {
		const failure = (message: string) => `data: ${JSON.stringify({ error: { message, code: "upstream_error" } })}\n\n`;
		const before = `: \n\ndata: {"choices":[{"delta":{"content":"Grüße data: {\\"error\\":"}}]}\n\n`;
		const unknown = `${failure("No text of ours")}data: {"error":null}\n\ndata: {"error":\n\n`;
		const [english, after] = ["The model server failed to answer.", 'data: {"choices":[]}\n\ndata: [DONE]\n\n'];
		const whole = before + failure(english) + unknown + after;
		const wanted = before + failure("Der Modellserver konnte nicht antworten.") + unknown + after;
		expect(await passedIn("de", whole, [])).toBe(wanted);
		const length = new TextEncoder().encode(whole).length;
		for (let cut = 1; cut < length; cut++) expect(await passedIn("de", whole, [cut])).toBe(wanted);
		expect(
			await passedIn(
				"de",
				whole,
				Array.from({ length }, (_, at) => at),
			),
		).toBe(wanted);
		expect(await passedIn("en", whole, [7])).toBe(whole);
		// A stream that ends within such a line, and a line that is longer than any failure.
		expect(await passedIn("de", 'data: {"err', [3])).toBe('data: {"err');
		const pass = failuresIn("de");
		const text = (part: string) => new TextDecoder().decode(pass?.pass(new TextEncoder().encode(part)));
		expect(text("data: {")).toBe("");
		expect(text('"choices')).toBe('data: {"choices');
		expect(text('":[]}\n')).toBe('":[]}\n');
		expect(text(`data: {"error":${"x".repeat(BODY_CHARS_MAX)}`)).toStartWith('data: {"error":xxx');
		expect(text("x\n")).toBe("x\n");
	});

	test("stays English where it is asked for, or where its German is not known", async () => {
		expect(toldIn("en", "Please sign in.")).toBe("Please sign in.");
		for (const unknown of ["constructor", "toString", "Please sign in. And more.", "x".repeat(5_000), ""])
			expect(german(unknown)).toBeUndefined();
		const body = (value: unknown) => new Response(JSON.stringify(value), { status: 400, headers: JSON_TYPE });
		const text = async (answer: Response) => (await answerIn("de", answer)).text();
		expect(await text(body({ message: "Invalid code", code: "INVALID_CODE" }))).toBe(
			'{"message":"Der Code ist falsch.","code":"INVALID_CODE"}',
		);
		for (const other of [null, [], "text", { error: null }, { error: { message: 1 } }, { message: "No text of ours" }])
			expect(await text(body(other))).toBe(JSON.stringify(other));
		const broken = new Response("{", { status: 500, headers: JSON_TYPE });
		expect(await text(broken)).toBe("{");
		const fine = new Response('{"message":"Invalid code"}', { headers: JSON_TYPE });
		expect(await answerIn("de", fine)).toBe(fine);
	});
});

/** As it reaches the reader of a body that comes in pieces, cut at these bytes. */
async function passedIn(language: Language, whole: string, cuts: readonly number[]): Promise<string> {
	const bytes = new TextEncoder().encode(whole);
	const pieces = [0, ...cuts].map((from, at) => bytes.slice(from, cuts[at] ?? bytes.length));
	const source = new ReadableStream<Uint8Array>({
		pull(controller) {
			const next = pieces.shift();
			if (next === undefined) controller.close();
			else controller.enqueue(next);
		},
	});
	const ends: number[] = [];
	const text = await new Response(passedBody(source, () => void ends.push(1), failuresIn(language))).text();
	expect(ends.length).toBe(1);
	return text;
}

const JSON_TYPE = { "content-type": "application/json" };
