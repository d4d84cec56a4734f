import { createElement, Fragment, type ReactNode } from "react";
import type { pages } from "../base/de.json";
import { ENGLISH, isLanguage, type Language } from "../base/language.ts";
import { CATALOGUE } from "./catalogue.ts";

/**
 * Texts of pages. The English text is its own key: `t("Create a key")`; a key that a catalogue lacks does not compile.
 * English needs no catalogue; another language is a script loaded before the pages (`pages/pages.ts`). The document's
 * language holds until a reload, so texts may be used outside components. `{name}` is a value; `<link>…</link>` is an
 * element for `rich`. An ambiguous English text adds its meaning after a bar, which is not shown: `t("Open|state")`.
 */

/** For counted texts: `{count}` is in both. */
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

/** From the document, which the server sets; English outside a browser. */
export const language: Language = documentLanguage();

/** Undefined in English, or if a language's script did not load: then pages stay in English. */
const catalogue = (globalThis as Readonly<Record<string, unknown>>)[CATALOGUE] as
	| Readonly<Record<string, string | Forms>>
	| undefined;

/** The reader's region if it uses this language: its order of day and month. */
export const locale: string = globalThis.navigator?.languages?.find((one) => one.startsWith(language)) ?? language;

const rules = new Intl.PluralRules(language);

/** A text in the reader's language. */
export function t<const T extends Text>(text: T, ...[values]: Given<T>): string {
	const found = catalogue?.[text];
	return filled(typeof found === "string" ? found : withoutNote(text), values);
}

/** A text with a count: `{count}`, formatted. `other` is the key. */
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

/** A sentence with elements, in the word order of the reader's language. */
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
		return typeof part === "string" ? isolated(part) : part;
	});
	return createElement(Fragment, null, ...pieces);
}

function filled(text: string, values: Readonly<Record<string, string | number>> | undefined): string {
	return values === undefined
		? text
		: text.replace(/\{(\w+)\}/g, (mark, name: string) => isolated(String(values[name] ?? mark)));
}

/** Hebrew, Arabic, and characters that change text direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** A name isolated from the direction of its surroundings. */
export function isolated(text: string): string {
	return TURNING.test(text) ? `\u2068${text}\u2069` : text;
}

function withoutNote(text: string): string {
	return text.replace(/\|[a-z ]+$/, "");
}

function documentLanguage(): Language {
	const said = globalThis.document?.documentElement.lang;
	return isLanguage(said) ? said : ENGLISH;
}

/** A word that stands alone, lower-cased within a sentence; German keeps its nouns' case. */
export const inSentence = (word: string): string => (language === "de" ? word : word.toLowerCase());
