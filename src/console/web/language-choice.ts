import { isLanguage, LANGUAGE_COOKIE, LANGUAGES, type Language } from "../texts/language.ts";

/** Which languages there are, and the choice of one: it holds for this browser, and the page is drawn anew in it. */

const KEPT_S = 365 * 86_400;

export const CHOICES = Object.entries(LANGUAGES).flatMap(([code, name]) => (isLanguage(code) ? [{ code, name }] : []));

/** False where the browser keeps no cookies: then it goes on saying what it wants itself. */
function keepLanguage(language: Language): boolean {
	const secure = location.protocol === "https:" ? "; Secure" : "";
	// biome-ignore lint/suspicious/noDocumentCookie: the store for cookies is not there where the page came over plain HTTP
	document.cookie = `${LANGUAGE_COOKIE}=${language}; Path=/; Max-Age=${KEPT_S}; SameSite=Lax${secure}`;
	return document.cookie.split("; ").includes(`${LANGUAGE_COOKIE}=${language}`);
}

export function chooseLanguage(language: Language): void {
	if (keepLanguage(language)) location.reload();
}
