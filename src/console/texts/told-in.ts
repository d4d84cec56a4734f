import { pages, server, signIn } from "../../base/de.json";
import { ENGLISH, type Language } from "../../base/language.ts";
import { germanMoment } from "./german-moment.ts";

/**
 * What was thrown in English, in the language of who reads it. A text is found by itself, or with its values; one that is not
 * known stays as it is. So who throws knows no reader, programs and the log have English, and a page carries no text of errors.
 */

/** Longer ones are no message of ours. */
const CHARS_MAX = 1_000;
/** An error of ours is a kilobyte. */
export const BODY_CHARS_MAX = 16_384;

/** States and the like, which stand in a message as values. */
const WORDS: Readonly<Record<string, string>> = {
	pending: "offen",
	confirmed: "bestätigt",
	rejected: "abgelehnt",
	cancelled: "abgebrochen",
	canceled: "abgebrochen",
	booked: "gebucht",
	completed: "abgeschlossen",
	failed: "fehlgeschlagen",
	expired: "abgelaufen",
	"This key": "Dieser Schlüssel",
	"The project of this key": "Das Projekt dieses Schlüssels",
};

const TEXTS: Readonly<Record<string, string>> = server;
/** By the code of the sign-in library. */
const SIGN_IN: Readonly<Record<string, string>> = signIn;

interface Pattern {
	readonly expression: RegExp;
	readonly names: readonly string[];
	readonly german: string;
}

const PATTERNS: readonly Pattern[] = Object.entries(TEXTS)
	.filter(([english]) => english.includes("{"))
	.map(([english, german]) => ({
		expression: new RegExp(`^${english.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "(.{1,200}?)")}$`, "s"),
		names: [...english.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name),
		german,
	}));

/** `message` in `language`; undefined if it has none there. */
export function toldIn(language: Language, message: string): string | undefined {
	if (language === ENGLISH) return message;
	if (message.length > CHARS_MAX) return undefined;
	const whole = found(message);
	if (whole !== undefined) return whole;
	// Some are made of sentences, each of which is known.
	const sentences = message.split(/(?<=\.) (?=[A-Z])/).map(found);
	return sentences.every((one) => one !== undefined) ? sentences.join(" ") : undefined;
}

function found(message: string): string | undefined {
	if (Object.hasOwn(TEXTS, message)) return TEXTS[message];
	for (const { expression, names, german } of PATTERNS) {
		const values = expression.exec(message)?.slice(1);
		if (values !== undefined)
			return german.replace(/\{(\w+)\}/g, (_, name: string) => valueIn(name, values[names.indexOf(name)] ?? ""));
	}
	return undefined;
}

/** Roles, rights and states have words of their own; days and moments are written as Germans write them. */
function valueIn(name: string, value: string): string {
	if (name === "moment" || name === "day") return germanMoment(value);
	if (Object.hasOwn(WORDS, value)) return WORDS[value] ?? value;
	const text: unknown = Object.hasOwn(pages, value) ? pages[value as keyof typeof pages] : undefined;
	return typeof text === "string" ? text : value;
}

/** An answer that is a failure, with its message in the language of who asked: both shapes, ours and that of sign-in. */
export async function answerIn(language: Language, answer: Response): Promise<Response> {
	if (language === ENGLISH || answer.status < 400 || answer.body === null) return answer;
	if (!answer.headers.get("content-type")?.startsWith("application/json")) return answer;
	const text = await answer.text();
	const headers = new Headers(answer.headers);
	headers.delete("content-length");
	return new Response(textIn(language, text), { status: answer.status, headers });
}

/** A failure as JSON, with its message in the reader's language; anything else as it is. */
export function textIn(language: Language, text: string): string {
	if (text.length > BODY_CHARS_MAX) return text;
	try {
		const body = JSON.parse(text) as { message?: unknown; code?: unknown; error?: { message?: unknown } };
		const shown = typeof body.error === "object" && body.error !== null ? body.error : body;
		if (typeof shown.message !== "string") return text;
		const code = String(body.code);
		const library = language !== ENGLISH && Object.hasOwn(SIGN_IN, code) ? SIGN_IN[code] : undefined;
		shown.message = toldIn(language, shown.message) ?? library ?? shown.message;
		return JSON.stringify(body);
	} catch {
		return text;
	}
}
