import { ENGLISH, isLanguage, LANGUAGE_COOKIE, LANGUAGES, type Language } from "../base/language.ts";
import { language } from "./texts.tsx";

/** Languages, and the choice of one for this browser; the page reloads in it. */

const KEPT_S = 365 * 86_400;

export const CHOICES = Object.entries(LANGUAGES).flatMap(([code, name]) => (isLanguage(code) ? [{ code, name }] : []));

const isKept = (wanted: Language): boolean => document.cookie.split("; ").includes(`${LANGUAGE_COOKIE}=${wanted}`);

/** Without cookies the browser's own preference counts. */
export function chooseLanguage(wanted: Language): void {
	const secure = location.protocol === "https:" ? "; Secure" : "";
	// biome-ignore lint/suspicious/noDocumentCookie: the store for cookies is not there where the page came over plain HTTP
	document.cookie = `${LANGUAGE_COOKIE}=${wanted}; Path=/; Max-Age=${KEPT_S}; SameSite=Lax${secure}`;
	if (isKept(wanted)) location.reload();
}

/**
 * A person's choice overrides this browser's, and the page reloads in it. Without a choice, the current language is
 * stored, so that mails use it too.
 */
export async function followLanguage(
	chosen: Language | null,
	save: (language: Language) => Promise<unknown>,
): Promise<void> {
	// A document that arrives in another language all the same is not requested again.
	if (chosen === language || (chosen !== null && isKept(chosen))) return;
	if (chosen !== null) chooseLanguage(chosen);
	else if (language !== ENGLISH) await save(language).catch(() => undefined);
}
