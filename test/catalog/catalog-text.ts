/** A minimal valid model in the form of `tollgate.yaml`, for tests that vary one thing. */
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
