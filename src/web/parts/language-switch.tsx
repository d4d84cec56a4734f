import type { Language } from "../../base/language.ts";
import { CHOICES, chooseLanguage } from "../language-choice.ts";
import { language, t } from "../texts.tsx";

/** Each language by its own name: who cannot read this one finds his. */
export function LanguageSwitch({ choose = chooseLanguage }: { choose?: (language: Language) => void }) {
	return (
		<nav className="languages small" aria-label={t("Language")}>
			{CHOICES.map(({ code, name }) => (
				<button
					key={code}
					type="button"
					className="link"
					lang={code}
					aria-current={code === language ? "true" : undefined}
					onClick={() => choose(code)}
				>
					{name}
				</button>
			))}
		</nav>
	);
}
