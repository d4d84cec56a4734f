import { Anchor, Group, NavLink, useMantineColorScheme } from "@mantine/core";
import { ENGLISH, isLanguage, LANGUAGE_COOKIE, LANGUAGES, type Language } from "../../base/language.ts";
import { language, t } from "../texts.tsx";
import { Icon } from "./icons.tsx";

export function LanguageSwitch({ choose = chooseLanguage }: { choose?: (language: Language) => void }) {
	return (
		<Group component="nav" gap="sm" aria-label={t("Language")}>
			{CHOICES.map(({ code, name }) => (
				<Anchor
					key={code}
					component="button"
					type="button"
					size="sm"
					lang={code}
					{...(code === language ? { "aria-current": true, c: "dimmed" } : {})}
					onClick={() => choose(code)}
				>
					{name}
				</Anchor>
			))}
		</Group>
	);
}

const NEXT = { light: "dark", dark: "auto", auto: "light" } as const;
const LABELS = { light: t("Light"), dark: t("Dark"), auto: t("System theme") } as const;

/** Switch between light, dark and system theme. The browser stores the choice. */
export function SchemeSwitch() {
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	return (
		<NavLink
			component="button"
			w="auto"
			aria-label={t("Theme: {present}. Switch to: {next}", {
				present: LABELS[colorScheme],
				next: LABELS[NEXT[colorScheme]],
			})}
			onClick={() => setColorScheme(NEXT[colorScheme])}
			leftSection={<Icon name={colorScheme} />}
			label={LABELS[colorScheme]}
		/>
	);
}

/** Language of the pages. A cookie of this browser stores the choice, and a change reloads the page. */

const KEPT_S = 365 * 86_400;

const CHOICES = Object.entries(LANGUAGES).flatMap(([code, name]) => (isLanguage(code) ? [{ code, name }] : []));

const isKept = (wanted: Language): boolean => document.cookie.split("; ").includes(`${LANGUAGE_COOKIE}=${wanted}`);

/** Stores the choice and reloads. If the browser refuses cookies, its language preference stays in effect. */
export function chooseLanguage(wanted: Language): void {
	const secure = location.protocol === "https:" ? "; Secure" : "";
	// biome-ignore lint/suspicious/noDocumentCookie: the store for cookies is not there where the page came over plain HTTP
	document.cookie = `${LANGUAGE_COOKIE}=${wanted}; Path=/; Max-Age=${KEPT_S}; SameSite=Lax${secure}`;
	if (isKept(wanted)) location.reload();
}

/**
 * Applies the person's stored language, with a reload if it differs. If none is stored, stores the current language, so
 * that mails use it too.
 */
export async function followLanguage(chosen: Language | null, save: (language: Language) => Promise<unknown>) {
	// Prevents an endless reload if the server sends another language despite the cookie.
	if (chosen === language || (chosen !== null && isKept(chosen))) return;
	if (chosen !== null) chooseLanguage(chosen);
	else if (language !== ENGLISH) await save(language).catch(() => undefined);
}
