import { useMantineColorScheme } from "@mantine/core";
import { Icon } from "./icons.tsx";

const NEXT = { light: "dark", dark: "auto", auto: "light" } as const;
const LABELS = { light: "Light", dark: "Dark", auto: "As the system" } as const;

/** Light, dark, or what the system says; kept in this browser. */
export function SchemeSwitch() {
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	return (
		<button
			type="button"
			className="user-button"
			aria-label={`Colours: ${LABELS[colorScheme]}. Change to: ${LABELS[NEXT[colorScheme]]}`}
			onClick={() => setColorScheme(NEXT[colorScheme])}
		>
			<Icon name={colorScheme} />
			<span>{LABELS[colorScheme]}</span>
		</button>
	);
}
