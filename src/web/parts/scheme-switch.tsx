import { useMantineColorScheme } from "@mantine/core";
import { t } from "../texts.tsx";
import { Icon } from "./icons.tsx";

const NEXT = { light: "dark", dark: "auto", auto: "light" } as const;
const LABELS = { light: t("Light"), dark: t("Dark"), auto: t("As the system") } as const;

/** Light, dark, or what the system says; kept in this browser. */
export function SchemeSwitch() {
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	return (
		<button
			type="button"
			className="user-button"
			aria-label={t("Colours: {present}. Change to: {next}", {
				present: LABELS[colorScheme],
				next: LABELS[NEXT[colorScheme]],
			})}
			onClick={() => setColorScheme(NEXT[colorScheme])}
		>
			<Icon name={colorScheme} />
			<span>{LABELS[colorScheme]}</span>
		</button>
	);
}
