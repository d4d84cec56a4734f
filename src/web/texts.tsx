import { createElement, Fragment, type ReactNode } from "react";
import type { pages } from "../base/de.json";
import { ENGLISH, isLanguage, type Language } from "../base/language.ts";
import { createUsdFormat, ENGLISH_USD, GERMAN_USD } from "../money/shown-usd.ts";
import { TEXTS_GLOBAL } from "./catalogue.ts";

/**
 * Texts of pages. The English text is its key, `t("Create a key")`; a missing translation does not compile. English
 * needs no catalogue. Another language is a script that loads before the pages (`pages/pages.ts`). The language is
 * fixed until a reload, so texts may be used outside components. `{name}` is a value; `<link>…</link>` an element for
 * `rich`. A suffix after a bar separates two meanings of a text and is not shown: `t("Open|state")`.
 */

/** Singular and plural of a text; both contain `{count}`. */
interface Forms {
	readonly one: string;
	readonly other: string;
}

type German = typeof pages;
type Text = keyof German;
type Counted = { [K in Text]: German[K] extends Forms ? K : never }[Text];

type Names<T> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
type Tags<T> = T extends `${string}</${infer Name}>${infer Rest}` ? Name | Tags<Rest> : never;
type Values<T, Value> = { readonly [Name in Names<T>]: Value };
type Given<T> = [Names<T>] extends [never] ? [] : [values: Values<T, string | number>];

const documentLanguage = globalThis.document?.documentElement.lang;
/** Language of the document, which the server chose; English if there is no document. */
export const language: Language = isLanguage(documentLanguage) ? documentLanguage : ENGLISH;

/** Undefined for English, and if the language's script did not load: then texts are English. */
const catalogue = (globalThis as Readonly<Record<string, unknown>>)[TEXTS_GLOBAL] as
	| Readonly<Record<string, string | Forms>>
	| undefined;

/** Locale for dates: the browser's first locale with the page's language. It decides the order of day and month. */
export const locale: string = globalThis.navigator?.languages?.find((one) => one.startsWith(language)) ?? language;

const rules = new Intl.PluralRules(language);

/** Returns a text in the page's language, with values inserted. */
export function t<const T extends Text>(text: T, ...[values]: Given<T>): string {
	const found = catalogue?.[text];
	return filled(typeof found === "string" ? found : withoutNote(text), values);
}

/** Returns the singular or plural with `{count}` formatted. The English plural (`other`) is the key. */
export function plural<const T extends Counted>(
	count: number,
	forms: { readonly one: string; readonly other: T },
	values: Values<T, string | number>,
): string {
	const found = catalogue?.[forms.other];
	const chosen = typeof found === "object" ? found : { one: forms.one, other: withoutNote(forms.other) };
	return filled(rules.select(count) === "one" ? chosen.one : chosen.other, values);
}

type Parts<T> = Values<T, ReactNode> & { readonly [Tag in Tags<T>]: (inner: string) => ReactNode };

/** Returns a sentence that contains elements, placed as the page's language requires. */
export function rich<const T extends Text>(text: T, parts: Parts<T>): ReactNode {
	const found = catalogue?.[text];
	const sentence = typeof found === "string" ? found : withoutNote(text);
	const draw = parts as Readonly<Record<string, ReactNode | ((inner: string) => ReactNode)>>;
	const pieces = sentence.split(/(\{\w+\}|<\w+>.*?<\/\w+>)/).map((piece) => {
		const [, value, tag, inner = ""] = /^(?:\{(\w+)\}|<(\w+)>(.*)<\/\w+>)$/.exec(piece) ?? [];
		const name = value ?? tag;
		if (name === undefined) return piece;
		const part = draw[name];
		if (typeof part === "function") return part(inner);
		return typeof part === "string" ? isolatedText(part) : part;
	});
	return createElement(Fragment, null, ...pieces);
}

function filled(text: string, values: Readonly<Record<string, string | number>> | undefined): string {
	return values === undefined
		? text
		: text.replace(/\{(\w+)\}/g, (mark, name: string) => isolatedText(String(values[name] ?? mark)));
}

/** Hebrew and Arabic letters, and control characters that change the text's direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Isolates a name, so that its letters cannot change the direction of the text around it. */
export const isolatedText = (text: string): string => (TURNING.test(text) ? `\u2068${text}\u2069` : text);

const withoutNote = (text: string): string => text.replace(/\|[a-z ]+$/, "");

/** Returns a label for use within a sentence: in lower case, but unchanged in German, whose nouns are capitalized. */
export const inSentence = (word: string): string => (language === "de" ? word : word.toLowerCase());

/** English numbers use US separators in every region, as the amounts in dollars do. */
const NUMBERS = language === "en" ? "en-US" : locale;
const whole = new Intl.NumberFormat(NUMBERS, { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(NUMBERS, { notation: "compact", maximumFractionDigits: 1 });

export const formatCount = (value: number): string => whole.format(value);
export const formatCompact = (value: number): string =>
	Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);

const percent = new Intl.NumberFormat(NUMBERS, { style: "percent", maximumFractionDigits: 1 });
export const formatPercent = (share: number): string => percent.format(share);

const fixed = new Map(([1, 2] as const).map((digits) => [digits, decimals(digits)]));
const formatFixed = (value: number, digits: 1 | 2): string => (fixed.get(digits) ?? whole).format(value);

/** Formats a tick of an axis. All ticks, which are `step` apart, get the same number of decimals. */
export const formatTick = (value: number, step: number): string =>
	step < 1 ? decimals(-Math.floor(Math.log10(step))).format(value) : (step < 1000 ? whole : compact).format(value);

function decimals(digits: number): Intl.NumberFormat {
	return new Intl.NumberFormat(NUMBERS, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Decimal and group separators for number fields, equal to those of the formats in this file. */
export const NUMBER_SEPARATORS =
	language === "de"
		? { thousandSeparator: ".", decimalSeparator: "," }
		: { thousandSeparator: ",", decimalSeparator: "." };

/** Formats a duration: `84 ms`, `2.31 s`, `3 min 20 s`, `4 h 5 min`, `12 d`. */
export function formatDuration(ms: number | null): string {
	if (ms === null) return "–";
	if (ms < 1000) return `${ms < 10 && !Number.isInteger(ms) ? formatFixed(ms, 1) : Math.round(ms)} ms`;
	if (ms < 60_000) return `${formatFixed(ms / 1000, ms < 10_000 ? 2 : 1)} s`;
	const seconds = Math.round(ms / 1000);
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
	if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
	return `${Math.floor(seconds / 86_400)} d`;
}

/** Formats a tick: in seconds (`0 s`, `2 s`) if ticks are at least one second apart, else in ms (`0 ms`, `500 ms`). */
export const formatDurationTick = (ms: number, stepMs: number): string =>
	stepMs < 1000 ? `${whole.format(ms)} ms` : `${whole.format(ms / 1000)} s`;

const dateTime = new Intl.DateTimeFormat(locale, {
	year: "numeric",
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	hourCycle: "h23",
});
const clock = new Intl.DateTimeFormat(locale, {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	fractionalSecondDigits: 3,
	hourCycle: "h23",
});
const shortTime = new Intl.DateTimeFormat(locale, {
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	hourCycle: "h23",
});
const date = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric" });

export const formatDateTime = (atMs: number): string => dateTime.format(atMs);
export const formatLogTime = (atMs: number): string => shortTime.format(atMs);
export const formatClock = (atMs: number): string => clock.format(atMs);
const day = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" });

export const formatDay = (atMs: number): string => day.format(atMs);
export const formatDate = (atMs: number): string => date.format(atMs);
export const formatUtc = (atMs: number): string =>
	`${new Date(atMs).toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** Formats a time relative to now: `3 min ago`, `in 2 d`; "just now" within ten seconds. */
export function formatAgo(atMs: number, nowMs: number): string {
	const distance = nowMs - atMs;
	const size = Math.abs(distance);
	if (size < 10_000) return t("just now");
	const [amount, unit] =
		size < 60_000
			? [Math.round(size / 1000), "s"]
			: size < 3_600_000
				? [Math.round(size / 60_000), "min"]
				: size < 172_800_000
					? [Math.round(size / 3_600_000), "h"]
					: [Math.round(size / 86_400_000), "d"];
	return distance > 0 ? t("{amount} {unit} ago", { amount, unit }) : t("in {amount} {unit}", { amount, unit });
}

export const { showUsd, showUsdExact, showUsdTick, showUsdWhole, showRatePerUnit, showRatePerMillion, showLineCost } =
	createUsdFormat(language === "de" ? GERMAN_USD : ENGLISH_USD);
