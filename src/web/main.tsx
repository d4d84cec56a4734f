import { MantineProvider } from "@mantine/core";
import { createRoot } from "react-dom/client";
import { App, preloadPage } from "./app.tsx";
import { cssVariables, schemeManager, theme } from "./theme.ts";

/**
 * Style elements that components make carry the nonce of this page's policy. It stands in the page itself; the second
 * way is for the library that locks scrolling behind a dialog.
 */
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
