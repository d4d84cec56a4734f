import { ENGLISH, isLanguage, LANGUAGE_COOKIE, LANGUAGES, type Language } from "../base/language.ts";
import { language } from "./texts.tsx";

/** Which languages there are, and the choice of one: it holds for this browser, and the page is drawn anew in it. */

const KEPT_S = 365 * 86_400;

export const CHOICES = Object.entries(LANGUAGES).flatMap(([code, name]) => (isLanguage(code) ? [{ code, name }] : []));

const isKept = (wanted: Language): boolean => document.cookie.split("; ").includes(`${LANGUAGE_COOKIE}=${wanted}`);

/** Where the browser keeps no cookies it goes on saying what it wants itself. */
export function chooseLanguage(wanted: Language): void {
	const secure = location.protocol === "https:" ? "; Secure" : "";
	// biome-ignore lint/suspicious/noDocumentCookie: the store for cookies is not there where the page came over plain HTTP
	document.cookie = `${LANGUAGE_COOKIE}=${wanted}; Path=/; Max-Age=${KEPT_S}; SameSite=Lax${secure}`;
	if (isKept(wanted)) location.reload();
}

/**
 * A person's own choice goes before what this browser kept: the page is drawn anew in it. Who has not chosen yet is known
 * from now on by what he reads here, so that mails are in it too.
 */
export async function followLanguage(
	chosen: Language | null,
	save: (language: Language) => Promise<unknown>,
): Promise<void> {
	// A document that comes in another language all the same is not asked for again and again.
	if (chosen === language || (chosen !== null && isKept(chosen))) return;
	if (chosen !== null) chooseLanguage(chosen);
	else if (language !== ENGLISH) await save(language).catch(() => undefined);
}
