import { Anchor, Group, NavLink, useMantineColorScheme } from "@mantine/core";
import type { Language } from "../../base/language.ts";
import { CHOICES, chooseLanguage } from "../language-choice.ts";
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
