import type { CSSVariablesResolver, MantineColorsTuple } from "@mantine/core";
import { createTheme, localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { createRoot } from "react-dom/client";
import type { AccentColors } from "../console/views.ts";
import { App, preloadPage } from "./app.tsx";
import { brand } from "./brand.ts";

/** The pages' colours: one accent, greys, and one colour each for success, warning and failure. */

const OURS: MantineColorsTuple = [
	"#eaf3f6",
	"#d6e6ec",
	"#aaccd9",
	"#7bb1c6",
	"#569ab6",
	"#3f8cac",
	"#2a7899",
	"#17637f",
	"#0f5069",
	"#093f55",
];

const { palette } = brand;
const accent = (palette?.shades as MantineColorsTuple | undefined) ?? OURS;

/** Dark shades with the hue of the pages' greys. */
const dark: MantineColorsTuple = [
	"#d5d9dd",
	"#b8bfc5",
	"#9aa4ad",
	"#8d969e",
	"#363d44",
	"#2c3238",
	"#1f2428",
	"#191d20",
	"#15181b",
	"#101214",
];

/** Red that has enough contrast under white text, and as text on its lightest shade. */
const red: MantineColorsTuple = [
	"#fdecea",
	"#fbd5d2",
	"#f5aaa4",
	"#ff8f87",
	"#e2554b",
	"#d43c31",
	"#b3261e",
	"#b3261e",
	"#96201a",
	"#7a1a15",
];

const theme = createTheme({
	colors: { accent, dark, red },
	black: "#1b1f23",
	primaryColor: "accent",
	primaryShade: { light: 7, dark: 6 },
	defaultRadius: "sm",
	cursorType: "pointer",
	respectReducedMotion: true,
	fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
	fontFamilyMonospace: 'ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
	fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "19px" },
	headings: { fontWeight: "600" },
	components: { Modal: { styles: { title: { fontWeight: 600 } } } },
});

/** Replaces Mantine's colours of dimmed text and placeholders: their contrast is below 4.5 to 1. */
const cssVariables: CSSVariablesResolver = () => ({
	variables: {},
	light: {
		"--mantine-color-dimmed": "#586069",
		"--mantine-color-placeholder": "#667078",
		"--mantine-color-error": "#b3261e",
		"--mantine-color-anchor": "#17637f",
		...accentVariables(palette?.light),
	},
	dark: {
		"--mantine-color-body": "#15181b",
		"--mantine-color-text": "#d5d9dd",
		"--mantine-color-dimmed": "#9aa4ad",
		"--mantine-color-placeholder": "#8d969e",
		"--mantine-color-error": "#ff8f87",
		"--mantine-color-anchor": "#7bb9d0",
		"--mantine-color-accent-light-color": "#7bb9d0",
		"--mantine-color-default": "#1c2024",
		"--mantine-color-default-hover": "#23282d",
		"--mantine-color-default-border": "#363d44",
		...accentVariables(palette?.dark),
	},
});

/** Sets the operator's brand colour as the accent of all style sheets. */
function accentVariables(accents: AccentColors | undefined): Record<string, string> {
	if (accents === undefined) return {};
	const { fill, text, soft } = accents;
	return {
		"--accent": text,
		"--accent-soft": soft,
		"--focus": text,
		"--mantine-color-anchor": text,
		"--mantine-primary-color-filled": fill,
		"--mantine-color-accent-filled": fill,
		"--mantine-color-accent-text": text,
		"--mantine-color-accent-light-color": text,
		"--mantine-color-accent-outline": text,
	};
}

const schemeManager = localStorageColorSchemeManager({ key: "tollgate-scheme" });

/** The document's nonce for style elements. The library that locks scrolling reads it from a global variable. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
Object.assign(globalThis, { __webpack_nonce__: nonce });

const root = document.getElementById("root");
if (root) {
	preloadPage();
	createRoot(root).render(
		<MantineProvider
			theme={theme}
			cssVariablesResolver={cssVariables}
			defaultColorScheme="auto"
			colorSchemeManager={schemeManager}
			getStyleNonce={() => nonce}
		>
			<App />
		</MantineProvider>,
	);
}
