import { MantineProvider } from "@mantine/core";
import { createRoot } from "react-dom/client";
import { App, preloadPage } from "./app.tsx";
import { cssVariables, schemeManager, theme } from "./theme.ts";

/**
 * Style elements carry the nonce of the page's policy, which is in the document; the second way is for the library that
 * locks scrolling under dialogs.
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
