import { t } from "../texts.tsx";
import aiSdk from "./ai-sdk.mjs" with { type: "text" };
import chatJava from "./Chat.java" with { type: "text" };
import { curlSnippet, KEY_VARIABLE, pythonSnippet, typescriptSnippet } from "./chat.ts";
import continueConfig from "./continue.yaml" with { type: "text" };
import langchainJavascript from "./langchain.mjs" with { type: "text" };
import langchainPython from "./langchain.py" with { type: "text" };
import litellm from "./litellm.py" with { type: "text" };
import llamaIndex from "./llamaindex.py" with { type: "text" };
import pom from "./maven.pom" with { type: "text" };
import openaiGo from "./openai.go" with { type: "text" };

/** A client tool that works with the service, and the steps to its first answer. */
export interface Tool {
	/** Id in URLs, in the browser's storage and in the table of test results. */
	readonly id: string;
	readonly name: string;
	/** Software that must be installed first. */
	readonly needs?: string;
	steps(facts: ToolValues): readonly ToolStep[];
}

export interface ToolValues {
	readonly baseUrl: string;
	readonly model: string;
	/** Secret of a key that was just created; a placeholder on other pages. */
	readonly apiKey: string;
	readonly serviceName: string;
	readonly question: string;
}

export type ToolStep =
	| PackageStep
	/** Lines for the shell. All steps of a tool run in the same shell. */
	| { readonly does: "shell"; readonly say: string; readonly code: string }
	| { readonly does: "file"; readonly path: string; readonly code: string }
	/** A field or menu of a graphical program, and the text to enter there. */
	| { readonly does: "place"; readonly say: string; readonly code?: string };

/** Installs packages. A separate kind of step, so that tests can pin versions. */
export interface PackageStep {
	readonly does: "packages";
	readonly by: keyof typeof INSTALLERS;
	readonly packages: readonly string[];
}

const INSTALLERS = {
	pip: (packages: string) => `pip install ${packages}`,
	npm: (packages: string) => `npm install ${packages}`,
	go: (packages: string) => `go mod init chat && go get ${packages}`,
};

/** Returns the command that installs the packages. `pinned` adds a version to a name in the installer's syntax. */
export function packageLine({ by, packages }: PackageStep, pinned: (name: string) => string = (name) => name): string {
	return INSTALLERS[by](packages.map(pinned).join(" "));
}

/** Replaces `{{placeholders}}` in a snippet. Placeholders are inside quoted strings, so values are escaped. */
export function fillSnippet(file: string, facts: Readonly<Record<string, string>>): string {
	const values: Readonly<Record<string, string>> = { ...facts, keyVariable: KEY_VARIABLE };
	return file.trimEnd().replace(/\{\{(\w+)\}\}/g, (mark, name: string) => {
		const value = values[name];
		return value === undefined ? mark : JSON.stringify(value).slice(1, -1);
	});
}

type Code = string | ((facts: ToolValues) => string);
const codeOf = (code: Code, facts: ToolValues): string =>
	typeof code === "string" ? fillSnippet(code, { ...facts }) : code(facts);

const keyStep = ({ apiKey }: ToolValues): ToolStep => ({
	does: "shell",
	say: t("Set the API key in this shell"),
	code: `export ${KEY_VARIABLE}="${apiKey}"`,
});

/** Builds the steps for a program: install packages, write files, export the key, run. */
function program(tool: {
	readonly id: string;
	readonly name: string;
	readonly needs?: string;
	readonly install?: readonly [by: PackageStep["by"], ...packages: string[]];
	readonly files: Readonly<Record<string, Code>>;
	readonly run: string;
}): Tool {
	const { install, files, run, ...rest } = tool;
	return {
		...rest,
		steps: (facts) => [
			...(install ? [{ does: "packages", by: install[0], packages: install.slice(1) } as const] : []),
			...Object.entries(files).map(([path, code]) => ({ does: "file", path, code: codeOf(code, facts) }) as const),
			keyStep(facts),
			{ does: "shell", say: t("Run it"), code: run },
		],
	};
}

const pythonProgram = (id: string, name: string, packages: string, code: Code): Tool =>
	program({ id, name, install: ["pip", packages], files: { "chat.py": code }, run: "python chat.py" });
const nodeProgram = (id: string, name: string, packages: readonly string[], code: Code, needs?: string): Tool =>
	program({
		id,
		name,
		...(needs ? { needs } : {}),
		install: ["npm", ...packages],
		files: { "chat.mjs": code },
		run: "node chat.mjs",
	});

const chat = ({ baseUrl, model, question }: ToolValues) => ({
	baseUrl,
	model,
	messages: [{ role: "user", content: question }],
	stream: true,
});

/** Tools in display order; `bun run snippets` tests them. */
export const TOOLS: readonly [Tool, ...Tool[]] = [
	{
		id: "curl",
		name: "curl",
		steps: (facts) => [keyStep(facts), { does: "shell", say: t("Send a request"), code: curlSnippet(chat(facts)) }],
	},
	pythonProgram("openai-python", "Python", "openai", (facts) => pythonSnippet(chat(facts))),
	nodeProgram(
		"openai-javascript",
		"JavaScript",
		["openai"],
		(facts) => typescriptSnippet(chat(facts)),
		t("TypeScript works the same way. Requires Node 20 or Bun."),
	),
	program({
		id: "openai-go",
		name: "Go",
		install: ["go", "github.com/openai/openai-go/v3"],
		files: { "main.go": openaiGo },
		run: "go run .",
	}),
	program({
		id: "openai-java",
		name: "Java",
		needs: t("Requires Java 17 and Maven."),
		files: { "pom.xml": pom, "src/main/java/Chat.java": chatJava },
		run: "mvn -q compile exec:java -Dexec.mainClass=Chat",
	}),
	pythonProgram("langchain-python", "LangChain", "langchain-openai", langchainPython),
	nodeProgram("langchain-javascript", "LangChain.js", ["@langchain/openai", "@langchain/core"], langchainJavascript),
	pythonProgram("llamaindex", "LlamaIndex", "llama-index-llms-openai-like", llamaIndex),
	nodeProgram("ai-sdk", "AI SDK", ["ai", "@ai-sdk/openai-compatible"], aiSdk),
	pythonProgram("litellm", "LiteLLM", "litellm", litellm),
	{
		id: "cursor",
		name: "Cursor",
		needs: t("Cursor sends requests from its own servers, so the base URL must be reachable from the internet."),
		steps: ({ baseUrl, model, apiKey }) => [
			{
				does: "place",
				say: t("Cursor Settings, Models, API Keys: switch “OpenAI API Key” on and enter"),
				code: apiKey,
			},
			{ does: "place", say: t("Below the API key, enable “Override OpenAI Base URL” and enter"), code: baseUrl },
			{ does: "place", say: t("Cursor Settings, Models: “Add custom model”, and enter"), code: model },
			{ does: "place", say: t("Choose that model in the chat.") },
		],
	},
	{
		id: "continue",
		name: "Continue",
		needs: t("For the VS Code and JetBrains extensions and the command line."),
		steps: (facts) => [
			{ does: "file", path: "~/.continue/config.yaml", code: codeOf(continueConfig, facts) },
			{ does: "place", say: t("Choose the model in the editor's chat, or run in a shell: cn") },
		],
	},
	{
		id: "open-webui",
		name: "Open WebUI",
		needs: t(
			"Requires Python 3.11 or 3.12. In an existing installation, enter the same two values under Admin Panel, Settings, Connections, OpenAI API.",
		),
		steps: ({ baseUrl, apiKey }) => [
			{ does: "packages", by: "pip", packages: ["open-webui"] },
			{
				does: "shell",
				say: t("Start it, then open http://localhost:8080. Every chat model of the service is in its list"),
				code: `export OPENAI_API_BASE_URL="${baseUrl}"\nexport OPENAI_API_KEY="${apiKey}"\nopen-webui serve`,
			},
		],
	},
];
