// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files under test hold ${NAME} themselves.
import { CatalogFileError, parseCatalogFile } from "../../src/catalog/file.ts";
import type { YamlProblem } from "../../src/catalog/yaml-reader.ts";

/** A minimal valid model of `tollgate.yaml`, for tests that change one field. */
export function modelYaml(
	fields: { id?: string; input?: string; output?: string; url?: string; extra?: string } = {},
): string {
	const { id = "m", input = "0.23", output = "0.40", url = "http://127.0.0.1:8000/v1", extra = "" } = fields;
	return `  - id: ${id}
    kind: chat
    context_length: 8192
    max_output_tokens: 1024
    rates: { input: "${input}", output: "${output}" }
    upstreams: [{ url: "${url}", model: served, dialect: vllm }]
${extra}`;
}

export const oneModel = (fields: Parameters<typeof modelYaml>[0] = {}) => `models:\n${modelYaml(fields)}`;

/** A file with every kind of model and every field except rates; `ENV` has its variables. */
export const FULL_CATALOGUE = `
x-rates: &rates { input: "0.23", cached_input: "0.06", output: "0.40" }
models:
  - id: llama-3.3-70b-instruct
    aliases: [llama, meta/llama]
    name: Llama 3.3 70B Instruct
    kind: chat                      # chat | embedding | transcription | image | rerank
    modes: [chat, completions]
    input_modalities: [text, image]
    image_urls: forward
    context_length: 131072
    max_output_tokens: 8192
    template_overhead_tokens: 64
    text_normalization: none
    parameters: [temperature, top_p, max_tokens]
    unsupported_parameters: reject
    developer_role: keep
    reasoning_history: omit
    isolate_prefixes: true
    rates: *rates
    cost: { replica_hour: "2.5000000005", input: "0.1" }
    upstreams:
      - url: http://127.0.0.1:8000/v1/
        api_key: \${VLLM_API_KEY}
        model: meta-llama/Llama-3.3-70B-Instruct
        dialect: vllm
        max_concurrency: \${CONCURRENCY}
        keep_alive: false
        reasoning_tokens: beside
      - { url: https://gpu-2.example, model: x, dialect: openai }
  - id: bge
    kind: embedding
    rates: { input: "0.01" }
    upstreams: [{ url: http://127.0.0.1:8080, model: bge, dialect: tei }]
  - id: whisper
    kind: transcription
    rates: { audio_second: "0.0001" }
    upstreams: [{ url: http://127.0.0.1:8081/v1, model: w, dialect: openai }]
limits:
  status_hold_s: 2.5
  body_mb: 8
`;
export const CATALOGUE_ENV = { VLLM_API_KEY: "key-1", CONCURRENCY: "32" };

export function problemsOf(text: string, env: Record<string, string | undefined> = {}): readonly YamlProblem[] {
	try {
		parseCatalogFile(text, env);
	} catch (error) {
		if (error instanceof CatalogFileError) return error.problems;
		throw error;
	}
	return [];
}

/** The problems in `text`, each as `line: message`. */
export const linesOf = (text: string, env: Record<string, string | undefined> = {}) =>
	problemsOf(text, env).map(({ line, message }) => `${line}: ${message}`);
