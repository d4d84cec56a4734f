import { t } from "../texts.tsx";
import type { Tool, ToolFacts } from "./tool.ts";

/** Programs that are set up and not programmed: where to go, and what to enter there. */

const cursor: Tool = {
	id: "cursor",
	name: "Cursor",
	needs: t("Cursor's own servers ask in your place: the base address must be one that the internet reaches."),
	steps: ({ baseUrl, model, apiKey }) => [
		{ does: "place", say: t("Cursor Settings, Models, API Keys: switch “OpenAI API Key” on and enter"), code: apiKey },
		{ does: "place", say: t("Below it: switch “Override OpenAI Base URL” on and enter"), code: baseUrl },
		{ does: "place", say: t("Cursor Settings, Models: “Add custom model”, and enter"), code: model },
		{ does: "place", say: t("Choose that model in the chat.") },
	],
};

const continueTool: Tool = {
	id: "continue",
	name: "Continue",
	needs: t("The extension of VS Code and JetBrains, or its command line."),
	steps: (facts) => [
		{ does: "file", path: "~/.continue/config.yaml", code: continueConfig(facts) },
		{ does: "place", say: t("Choose the model in the chat of the editor, or ask in a shell: cn") },
	],
};

const continueConfig = ({ baseUrl, model, apiKey, serviceName }: ToolFacts) => `name: ${JSON.stringify(serviceName)}
version: 1.0.0
schema: v1
models:
  - name: ${JSON.stringify(model)}
    provider: openai
    model: ${JSON.stringify(model)}
    apiBase: ${baseUrl}
    apiKey: ${apiKey}
    roles: [chat, edit, apply]
    capabilities: [tool_use]`;

const openWebUi: Tool = {
	id: "open-webui",
	name: "Open WebUI",
	needs: t(
		"Python 3.11 or 3.12. A running one: Admin Panel, Settings, Connections, OpenAI API, with the same two values.",
	),
	steps: ({ baseUrl, apiKey }) => [
		{ does: "packages", by: "pip", packages: ["open-webui"] },
		{
			does: "shell",
			say: t("Start it, then open http://localhost:8080; each chat model of the service is in its list"),
			code: `export OPENAI_API_BASE_URL="${baseUrl}"\nexport OPENAI_API_KEY="${apiKey}"\nopen-webui serve`,
		},
	],
};

export const SETTINGS_TOOLS: readonly Tool[] = [cursor, continueTool, openWebUi];
