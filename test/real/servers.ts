/** Real model servers, each with one model of random weights. */
import { join } from "node:path";

export interface Place {
	/** The executable: a Python with the package, or the server itself. */
	readonly program: string;
	readonly folder: string;
	/** The model: a GGUF file, or a folder for `hugging-face`. */
	readonly file: string;
	readonly port: number;
	readonly contextLength: number;
}

export interface RealServer {
	readonly format: "gguf" | "hugging-face";
	readonly dialect: string;
	readonly model: string;
	/** Maximum number of concurrent requests of the server, as started here. */
	readonly places: number;
	readonly parameters: readonly string[];
	/** True if the server's streams end with usage. */
	readonly countsStreams: boolean;
	/** True if the server refuses a prompt above its context, instead of cutting or answering it. */
	readonly refusesLongPrompts: boolean;
	/** True if the server reports cached prompt tokens. */
	readonly tellsCached: boolean;
	readonly serves: readonly ("chat" | "embeddings" | "rankings")[];
	/** True if the server can force a model with random weights to call a tool. */
	readonly callsTools: boolean;
	command(place: Place): readonly string[];
	env?(place: Place): Record<string, string>;
	/** Command that makes the model known to the running server. */
	prepare?(place: Place): readonly string[];
	version(program: string): string;
}

const said = (...command: string[]) => {
	const { stdout, stderr } = Bun.spawnSync(command);
	return `${stdout}\n${stderr}`;
};
const numbered = (text: string) => /\d+(?:\.\d+)+/.exec(text)?.[0] ?? "of an unknown version";

const USUAL = ["temperature", "top_p", "max_tokens", "stop", "seed"];

const VLLM_CHATS = ["--max-num-seqs", "4", "--enable-prompt-tokens-details"];
const vllm = ({ program, file, port, contextLength }: Place) => [
	...[program, "serve", file, "--served-model-name", "tiny", "--max-model-len", String(contextLength)],
	...["--host", "127.0.0.1", "--port", String(port), "--dtype", "float32", "--enforce-eager"],
];
const VLLM: Omit<RealServer, "command"> = {
	format: "hugging-face",
	dialect: "vllm",
	model: "tiny",
	places: 4,
	parameters: [...USUAL, "n", "logprobs", "top_logprobs", "response_format", "tools", "tool_choice"],
	countsStreams: true,
	refusesLongPrompts: true,
	tellsCached: true,
	serves: ["chat"],
	callsTools: true,
	env: () => ({ OMP_NUM_THREADS: "1", VLLM_CPU_KVCACHE_SPACE: "1", HF_HUB_OFFLINE: "1", VLLM_NO_USAGE_STATS: "1" }),
	version: (program) => numbered(said(program, "--version")),
};

export const REAL_SERVERS: Readonly<Record<string, RealServer>> = {
	"llama-cpp-python": {
		format: "gguf",
		dialect: "openai",
		model: "tiny",
		// The server runs one request at a time, and aborts a running stream for the next request.
		places: 1,
		parameters: [...USUAL, "logprobs", "top_logprobs"],
		countsStreams: false,
		refusesLongPrompts: true,
		tellsCached: false,
		serves: ["chat"],
		callsTools: false,
		command: ({ program, file, port, contextLength }) => [
			...[program, "-m", "llama_cpp.server", "--model", file, "--n_ctx", String(contextLength)],
			...["--host", "127.0.0.1", "--port", String(port), "--n_threads", "1", "--model_alias", "tiny"],
		],
		version: (program) => numbered(said(program, "-c", "import llama_cpp; print(llama_cpp.__version__)")),
	},
	"llama-server": {
		format: "gguf",
		dialect: "llama.cpp",
		model: "tiny",
		places: 2,
		parameters: [...USUAL, "n", "logprobs", "top_logprobs", "response_format"],
		countsStreams: true,
		refusesLongPrompts: true,
		tellsCached: true,
		serves: ["chat", "embeddings"],
		callsTools: false,
		command: ({ program, file, port, contextLength }) => [
			...[program, "-m", file, "-c", String(2 * contextLength), "-np", "2", "-t", "1", "--alias", "tiny"],
			...["--host", "127.0.0.1", "--port", String(port), "--embeddings", "--pooling", "mean"],
		],
		version: (program) => numbered(said(program, "--version")),
	},
	ollama: {
		format: "gguf",
		dialect: "ollama",
		model: "tiny",
		places: 2,
		parameters: [...USUAL, "response_format"],
		countsStreams: true,
		refusesLongPrompts: false,
		tellsCached: false,
		serves: ["chat", "embeddings"],
		callsTools: false,
		command: ({ program }) => [program, "serve"],
		env: ({ folder, port, contextLength }) => ({
			HOME: folder,
			OLLAMA_HOST: `127.0.0.1:${port}`,
			OLLAMA_MODELS: join(folder, "models"),
			OLLAMA_CONTEXT_LENGTH: String(contextLength),
			OLLAMA_NUM_PARALLEL: "2",
		}),
		prepare: ({ program, folder }) => [program, "create", "tiny", "-f", join(folder, "Modelfile")],
		version: (program) => numbered(said(program, "--version")),
	},
	transformers: {
		format: "hugging-face",
		dialect: "openai",
		model: "tiny",
		places: 2,
		parameters: USUAL,
		countsStreams: true,
		refusesLongPrompts: false,
		tellsCached: false,
		serves: ["chat"],
		callsTools: false,
		// The server accepts only the model name with which it was started, which is the folder's name.
		command: ({ program, port }) => [
			...[program, "serve", "--device", "cpu", "--host", "127.0.0.1", "--port", String(port), "tiny"],
		],
		// The server lists downloaded models only after a scan.
		env: ({ folder }) => ({ OMP_NUM_THREADS: "1", HF_HUB_OFFLINE: "1", HF_HUB_CACHE: folder }),
		version: (program) => numbered(said(program, "version")),
	},
	vllm: {
		...VLLM,
		command: (place) => [...vllm(place), ...VLLM_CHATS, "--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
	},
	"vllm-thinking": {
		...VLLM,
		parameters: [...USUAL, "n", "logprobs", "top_logprobs"],
		callsTools: false,
		command: (place) => [...vllm(place), ...VLLM_CHATS, "--reasoning-parser", "deepseek_r1"],
	},
	"vllm-pooling": {
		...VLLM,
		parameters: [],
		serves: ["embeddings", "rankings"],
		callsTools: false,
		command: (place) => [...vllm(place), "--runner", "pooling", "--convert", "embed"],
	},
};
