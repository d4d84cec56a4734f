/**
 * Client programs that `bun run clients` installs in exact versions. Each is run by the script with the client's id.
 */
export interface Client {
	readonly id: string;
	readonly registry: "PyPI" | "npm" | "Maven";
	readonly packages: readonly string[];
}

const python = (id: string, ...packages: readonly string[]): Client => ({ id, registry: "PyPI", packages });
const node = (id: string, ...packages: readonly string[]): Client => ({ id, registry: "npm", packages });

const java = (id: string, ...packages: readonly string[]): Client => ({ id, registry: "Maven", packages });

export const CLIENTS: readonly Client[] = [
	python("openai-agents", "openai-agents==0.24.0"),
	python("pydantic-ai", "pydantic-ai-slim[openai]==2.68.0"),
	python("langchain", "langchain-openai==1.7.4"),
	python("litellm", "litellm==1.110.2"),
	python("strands", "strands-agents[openai]==1.62.0"),
	python("autogen", "autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
	python("smolagents", "smolagents[openai]==1.26.0"),
	python("haystack", "haystack-ai==3.4.1"),
	python("semantic-kernel", "semantic-kernel==1.45.0"),
	python("inspect-ai", "inspect-ai==0.3.285", "openai==3.57.0"),
	python("dspy", "dspy==3.4.1"),
	python("lm-eval", "lm-eval[api]==0.4.13"),
	node("ai-sdk", "ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "zod@4.6.7"),
	node("promptfoo", "promptfoo@0.123.1"),
	node("opencode", "opencode-ai@1.18.33"),
	node("continue", "@continuedev/cli@1.5.47"),
	node("qwen-code", "@qwen-code/qwen-code@0.24.4"),
	python("crewai", "crewai==1.15.30"),
	python("aider", "aider-chat==0.86.2"),
	java("openai-java", "com.openai:openai-java:4.101.0"),
	java("langchain4j", "dev.langchain4j:langchain4j-open-ai:1.19.0"),
];
