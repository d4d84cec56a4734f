import { NavLink, useMantineColorScheme } from "@mantine/core";
import { t } from "../texts.tsx";
import { Icon } from "./icons.tsx";

const NEXT = { light: "dark", dark: "auto", auto: "light" } as const;
const LABELS = { light: t("Light"), dark: t("Dark"), auto: t("System theme") } as const;

/** Light, dark or system theme, kept in this browser. */
export function SchemeSwitch() {
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	return (
		<NavLink
			component="button"
			w="auto"
			aria-label={t("Colours: {present}. Change to: {next}", {
				present: LABELS[colorScheme],
				next: LABELS[NEXT[colorScheme]],
			})}
			onClick={() => setColorScheme(NEXT[colorScheme])}
			leftSection={<Icon name={colorScheme} />}
			label={LABELS[colorScheme]}
		/>
	);
}
