import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BASE_ERROR_CODES } from "better-auth";
import { TWO_FACTOR_ERROR_CODES } from "better-auth/plugins";
import { parseSync } from "oxc-parser";
import { CreditFault } from "../../src/admission/credit-fault.ts";
import { pages, pauses, server, signIn } from "../../src/base/de.json";
import { englishText, fillPlaceholders, translate, translateAll } from "../../src/base/translate.ts";
import { lineRetryDecision } from "../../src/batch/line-text.ts";
import { RIGHTS, ROLE_LABELS } from "../../src/console/members/roles.ts";
import { signInError, translateSignIn } from "../../src/console/sign-in/sign-in-error.ts";
import { ERRORS } from "../../src/gateway/error-body.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

/** Names of functions that create faults, and of functions that take a fault's text as argument. */
const REFUSES = /^(Fault|KeyFault|ConsoleError)$/;
const HANDS_ON = /^(check|refuse|faultOfSql|badInput|missing|invalid|notJson|toProblem|signInError|write)$/;

/** A fault's text in a source file, with its code and the names of the values to insert. */
interface FaultText {
	/** `x1` marks a part that the code computes; such a text cannot be translated. */
	readonly text: string;
	readonly values: readonly string[];
	readonly code: string;
}

function faultTexts(path: string, source: string): readonly FaultText[] {
	const texts: FaultText[] = [];
	const { program, errors } = parseSync(path, source);
	if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);

	function visit(node: Node): void {
		const callee = String((node.callee as Node | undefined)?.name ?? "");
		if (
			(node.type === "NewExpression" && REFUSES.test(callee)) ||
			(node.type === "CallExpression" && HANDS_ON.test(callee))
		) {
			const given = node.arguments as Node[];
			const values = given.flatMap(valuesOf);
			const [code = ""] = given.map(textOf).filter((text) => text !== undefined);
			for (const argument of given) {
				const text = textOf(argument);
				if (text !== undefined && /[ ]/.test(text)) texts.push({ text, values, code });
			}
		}
		for (const value of Object.values(node)) {
			for (const part of Array.isArray(value) ? value : [value]) if (isNode(part)) visit(part);
		}
	}
	visit(program as unknown as Node);
	return texts;
}

function textOf(node: Node): string | undefined {
	if (node.type === "Literal" && typeof node.value === "string") return node.value;
	if (node.type !== "TemplateLiteral") return undefined;
	return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join("x1");
}

/** Returns the names in `{ values: { … } }`, or in `{ … }`. */
function valuesOf(node: Node): string[] {
	if (node.type !== "ObjectExpression") return [];
	return (node.properties as Node[]).flatMap((property) => {
		const name = String((property.key as Node | undefined)?.name ?? "");
		return name === "values" ? valuesOf(property.value as Node) : [name];
	});
}

const isNode = (value: unknown): value is Node =>
	typeof value === "object" && value !== null && typeof (value as Node).type === "string";

const SOURCE = join(import.meta.dir, "../../src");
const files = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: SOURCE })].sort();
const read = (path: string) => readFileSync(join(SOURCE, path), "utf8");
const german = (id: string, values = {}) => translate("de", { id, values });
const marks = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name).sort();

/** Files whose errors are read by programs and operators only, so they stay in English. */
const FOR_PROGRAMS =
	/^(console\/brand|billing\/stripe-events|keys\/bearer|keys\/failed-attempts|db\/(embedded|function-set|migrate|own-|pooler|session-|postgres-|postmaster|reachable-|server-|way)|ledger|cluster)/;
const thrown = ["console", "billing", "keys", "files", "batch", "db", "limits", "money"]
	.flatMap((room) => files(`${room}/**/*.ts`))
	.filter((path) => !FOR_PROGRAMS.test(path))
	.flatMap((path) => faultTexts(path, read(path)).map((text) => ({ path, ...text })));
const ofSignIn = thrown.filter(({ code }) => Object.hasOwn(signIn, code) && /^[A-Z_]+$|^reauth/.test(code));
const raised = files("db/functions/*.sql").flatMap((path) =>
	[...read(path).matchAll(/raise exception '([^']+)'[^;]*?errcode = 'TG00[245]'(?:, detail = ([^;]*))?/g)].map(
		([, text = "", detail = ""]) => ({
			path,
			text,
			values: [...detail.matchAll(/'(\w+)'/g)].map(([, name = ""]) => name),
			code: "",
		}),
	),
);
const booksCheck = read("db/functions/books-check.sql");

describe("errors that people read", () => {
	test("have a translation with all values for each text in the code", () => {
		expect(thrown.length).toBeGreaterThan(150);
		expect(raised.length).toBeGreaterThan(15);
		const asked = [...thrown.filter((one) => !ofSignIn.includes(one)), ...raised];
		expect(asked.filter(({ text }) => !Object.hasOwn(server, text))).toEqual([]);
		const lacking = [...asked, ...ofSignIn].filter(
			({ text, values }) => !marks(text).every((name) => values.includes(name)),
		);
		expect(lacking).toEqual([]);
	});

	test("have a translation of each check of the books and its problems", () => {
		const checks = [...booksCheck.matchAll(/^ {4}\('((?:[^']|'')+)'\),?$/gm)].map(([, name = ""]) => name);
		expect(checks.length).toBeGreaterThan(10);
		const problems = [...booksCheck.matchAll(/(?:return |then )'([a-z]+ [^']+)'/g)].map(([, text = ""]) => text);
		expect(problems.length).toBe(6);
		for (const id of [...checks, ...problems])
			expect([id, Object.hasOwn(server, id.replaceAll("''", "'"))]).toEqual([id, true]);
		expect(
			german("failed {count} times, first at {place}: {problem}", {
				...{ count: 2, place: "2026-11-24", problem: "a settled request was changed" },
			}),
		).toBe("2 Mal fehlgeschlagen, zuerst bei 2026-11-24: eine abgerechnete Anfrage wurde geändert");
	});

	test("have a translation with all values for each code of sign-in", () => {
		const library = [...Object.values(BASE_ERROR_CODES), ...Object.values(TWO_FACTOR_ERROR_CODES)].map(
			({ code }) => code as string,
		);
		const codes = new Set([...library, ...ofSignIn.map(({ code }) => code), "TOO_MANY_REQUESTS", "INVALID_NAME"]);
		expect(Object.keys(signIn).filter((code) => !codes.has(code))).toEqual([]);
		expect([...codes].filter((code) => !Object.hasOwn(signIn, code))).toEqual([]);
		for (const { code, text } of ofSignIn)
			expect([code, marks(text)]).toEqual([code, marks((signIn as Record<string, string>)[code] ?? "")]);
		const texts = ofSignIn.filter(({ code, text }) =>
			ofSignIn.some((other) => other.code === code && other.text !== text),
		);
		expect(texts).toEqual([]);
	});

	test("have a translation of each reason why a batch pauses", () => {
		const waits = Object.keys(ERRORS).filter((code) => !["final", "key"].includes(lineRetryDecision(400, code)));
		expect(Object.keys(pauses).toSorted()).toEqual(waits.toSorted());
	});
});

describe("the server's German texts", () => {
	const source = [...files("**/*.ts"), ...files("db/functions/*.sql")]
		.filter((path) => !path.startsWith("web/"))
		.map(read)
		.join("\n");

	test("include none that is unused or repeated", () => {
		const unused = Object.keys(server).filter(
			(id) => ![JSON.stringify(id), `'${id.replaceAll("'", "''")}'`, `${id}:`].some((text) => source.includes(text)),
		);
		expect(unused).toEqual([]);
		const count = [pages, server, signIn, pauses].reduce((sum, texts) => sum + Object.keys(texts).length, 0);
		expect(read("base/de.json").match(/^\t\t"/gm)?.length).toBe(count);
	});

	test("have the values of the English text and differ from it", () => {
		const all = (text: string) => (text.match(/\{\w+\}|`[^`]*`/g) ?? []).sort();
		for (const [english, text] of Object.entries(server)) {
			expect([english, all(text)]).toEqual([english, all(english)]);
			expect(text).not.toBe(english);
		}
	});

	test("translate known words in inserted values and keep other values unchanged", () => {
		expect(german("There is no top-up {id}.", { id: "confirmed" })).toBe("Es gibt keine Aufladung confirmed.");
		expect(german("The top-up is {state}: it cannot be cancelled.", { state: "confirmed" })).toBe(
			"Die Aufladung ist bestätigt und kann nicht abgebrochen werden.",
		);
		expect(fillPlaceholders("{a} {b}", { a: "{b} $&" })).toBe("{b} $& {b}");
		for (const role of Object.values(ROLE_LABELS))
			for (const { says } of Object.values(RIGHTS)) {
				const said = german("Your role in this account ({role}) cannot {right}.", { role, right: says });
				expect(said).not.toContain(says);
				expect(said).toStartWith("Ihre Rolle in diesem Konto (");
			}
		const short = { requiredNanoUsd: nanoUsd(2), availableNanoUsd: nanoUsd(1), heldNanoUsd: nanoUsd(0) };
		for (const affordableMaxTokens of [null, 12])
			for (const renewsAtMs of [null, 0]) {
				const { texts, message } = new CreditFault("key_cap_exceeded", { ...short, affordableMaxTokens }, renewsAtMs);
				expect(message).toBe(texts.map(englishText).join(" "));
				expect(texts.filter(({ id }) => !Object.hasOwn(server, id))).toEqual([]);
				expect(translateAll("de", texts)).toStartWith(
					"Die Obergrenze dieses Schlüssels deckt die Anfrage nicht. Die Anfrage kann bis zu USD 0.000000002 kosten",
				);
			}
	});

	test("have dates in German form", () => {
		expect(german("The cap renews at {moment}.", { moment: "2026-12-01T00:00:00.000Z" })).toBe(
			"Die Obergrenze erneuert sich am 01.12.2026 um 00:00 Uhr (UTC).",
		);
		expect(
			german("The model `{id}` was retired on {day}: see GET /v1/models.", { id: "a-2026-11-22", day: "2026-11-22" }),
		).toBe("Das Modell `a-2026-11-22` wurde am 22.11.2026 abgeschaltet: siehe GET /v1/models.");
	});

	test("show the English text if a translation is missing", () => {
		for (const unknown of ["constructor", "toString", "No text of ours {id}", ""])
			expect(german(unknown)).toBe(unknown);
		expect(translate("en", { id: "Please sign in." })).toBe("Please sign in.");
	});
});

describe("an error answer of sign-in", () => {
	const body = (value: unknown, status = 400) => new Response(JSON.stringify(value), { status, headers: JSON_TYPE });
	const text = async (answer: Response) => (await translateSignIn("de", answer)).text();

	test("has the German message of its code, with its values", async () => {
		expect(await text(body({ message: "whatever", code: "INVALID_CODE" }))).toBe(
			'{"message":"Der Code ist falsch.","code":"INVALID_CODE"}',
		);
		const { message, body: thrown } = signInError("PASSWORD_TOO_SHORT", "A password has at least {count} characters.", {
			values: { count: 12 },
		});
		expect(message).toBe("A password has at least 12 characters.");
		expect(await text(body(thrown))).toContain("Ein Passwort hat mindestens 12 Zeichen.");
		expect(await text(body({ message: "Too many requests." }, 429))).toContain("Zu viele Anfragen.");
	});

	test("stays unchanged in English, with an unknown code, or without an error", async () => {
		const short = { message: "Password too short", code: "PASSWORD_TOO_SHORT" };
		for (const other of [
			null,
			[],
			"text",
			{ message: 1, code: "INVALID_CODE" },
			{ message: "x", code: "toString" },
			short,
		])
			expect(await text(body(other))).toBe(JSON.stringify(other));
		expect(await text(new Response("{", { status: 500, headers: JSON_TYPE }))).toBe("{");
		const fine = new Response('{"message":"x","code":"INVALID_CODE"}', { headers: JSON_TYPE });
		expect(await translateSignIn("de", fine)).toBe(fine);
	});
});

const JSON_TYPE = { "content-type": "application/json" };
