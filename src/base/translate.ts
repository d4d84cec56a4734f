import { pages, server } from "./de.json";
import { ENGLISH, type Language } from "./language.ts";

/**
 * Id of a text that the server writes: errors, mails, receipts, statements. The id is the English form, with `{name}`
 * for values; `server` in `de.json` has the German form under the same id.
 */

export type TextId = keyof typeof server;

export type TextValues = Readonly<Record<string, string | number | bigint>>;

/** A text to translate: its id and the values of its placeholders. */
export interface Text {
	readonly id: string;
	readonly values?: TextValues;
}

const SERVER: Readonly<Record<string, string>> = server;
export interface KnownText extends Text {
	readonly id: TextId;
}

/** German names of roles and rights, which pages use too. */
const PAGES: Readonly<Record<string, unknown>> = pages;
/** Names of placeholders whose values are texts that are translated too, such as states and roles. */
const WORDS: ReadonlySet<string> = new Set(["state", "role", "right", "who", "problem", "period", "why"]);
/** Names of placeholders whose values are dates: `2027-01-31`, `2027-01-31T12:00:00Z`. */
const DATES: ReadonlySet<string> = new Set(["moment", "day"]);

/** Names of placeholders whose values are decimals: `1.25`. */
const DECIMALS: ReadonlySet<string> = new Set([
	"amount",
	"balance",
	"cap",
	"cost",
	"percent",
	"spent",
	"threshold",
	"top",
]);

export function englishText({ id, values }: Text): string {
	return values === undefined ? id : fillPlaceholders(id, values);
}

/** The text in `language`, or in English if there is no translation. */
export function translate(language: Language, text: Text): string {
	const german = language === ENGLISH ? undefined : germanOf(SERVER, text.id);
	if (german === undefined) return englishText(text);
	const { values } = text;
	return values === undefined ? german : filled(german, (name) => germanValue(name, values[name]));
}

export function translateAll(language: Language, texts: readonly Text[]): string {
	return texts.map((text) => translate(language, text)).join(" ");
}

export function translateDate(language: Language, day: string): string {
	return language === ENGLISH ? day : germanMoment(day);
}

export function translateId(language: Language, id: TextId, values?: TextValues): string {
	return translate(language, values === undefined ? { id } : { id, values });
}

function germanValue(name: string, value: TextValues[string] | undefined): TextValues[string] | undefined {
	if (WORDS.has(name)) return germanOf(SERVER, String(value)) ?? germanOf(PAGES, String(value)) ?? value;
	if (DECIMALS.has(name)) return String(value).replace(".", ",");
	return DATES.has(name) ? germanMoment(String(value)) : value;
}

function germanOf(texts: Readonly<Record<string, unknown>>, id: string): string | undefined {
	const text = Object.hasOwn(texts, id) ? texts[id] : undefined;
	return typeof text === "string" ? text : undefined;
}

/** Replaces placeholders by their values. A placeholder without a value stays. */
export function fillPlaceholders(text: string, values: TextValues): string {
	return filled(text, (name) => values[name]);
}

function filled(text: string, valueFor: (name: string) => TextValues[string] | undefined): string {
	return text.replace(/\{(\w+)\}/g, (mark, name: string) => String(valueFor(name) ?? mark));
}

/** A date or time (UTC) as German writes it; any other text unchanged. */
function germanMoment(text: string): string {
	const [, year, month, day, time] = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d:\d\d))?/.exec(text) ?? [];
	if (year === undefined) return text;
	return `${day}.${month}.${year}${time === undefined ? "" : ` um ${time} Uhr (UTC)`}`;
}
