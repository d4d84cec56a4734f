import { createElement, Fragment, type ReactNode } from "react";
import type { pages } from "../base/de.json";
import { ENGLISH, isLanguage, type Language } from "../base/language.ts";
import { TEXTS_GLOBAL } from "./catalogue.ts";

/**
 * Texts of pages. The English text is its key, `t("Create a key")`, and a missing translation does not compile. English
 * needs no catalogue; another language is a script loaded before the pages (`pages/pages.ts`). The language is fixed
 * until a reload, so texts may be used outside components. `{name}` is a value; `<link>…</link>` an element for `rich`.
 * Text after a bar tells apart two meanings and is not shown: `t("Open|state")`.
 */

/** Forms of a counted text; both contain `{count}`. */
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

/** Language of the document, which the server chose; English outside a browser. */
export const language: Language = documentLanguage();

/** Undefined for English, or if the language's script did not load: pages are then English. */
const catalogue = (globalThis as Readonly<Record<string, unknown>>)[TEXTS_GLOBAL] as
	| Readonly<Record<string, string | Forms>>
	| undefined;

/** Locale for dates: the reader's region if it has the page's language; it decides the order of day and month. */
export const locale: string = globalThis.navigator?.languages?.find((one) => one.startsWith(language)) ?? language;

const rules = new Intl.PluralRules(language);

/** A text in the reader's language. */
export function t<const T extends Text>(text: T, ...[values]: Given<T>): string {
	const found = catalogue?.[text];
	return filled(typeof found === "string" ? found : withoutNote(text), values);
}

/** A counted text with its formatted `{count}`. `other` is the key. */
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

/** A sentence that contains elements, in the word order of the reader's language. */
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

/** Hebrew and Arabic letters, and control characters that change text direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Marks a name so that it cannot change the text direction around it. */
export function isolatedText(text: string): string {
	return TURNING.test(text) ? `\u2068${text}\u2069` : text;
}

function withoutNote(text: string): string {
	return text.replace(/\|[a-z ]+$/, "");
}

function documentLanguage(): Language {
	const said = globalThis.document?.documentElement.lang;
	return isLanguage(said) ? said : ENGLISH;
}

/** A word in the middle of a sentence: in lower case, but German nouns keep their capital. */
export const inSentence = (word: string): string => (language === "de" ? word : word.toLowerCase());
