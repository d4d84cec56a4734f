import { Anchor, Group } from "@mantine/core";
import type { Language } from "../../base/language.ts";
import { CHOICES, chooseLanguage } from "../language-choice.ts";
import { language, t } from "../texts.tsx";

/** Each language by its own name. */
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
