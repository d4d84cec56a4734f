import { type CatalogSnapshot, findModel, type Model, notFoundText } from "../catalog/model.ts";
import { inputLines, LINE_BYTES_MAX, type LineProblem, readLine } from "./batch-line.ts";
import { type BatchEndpoint, type BatchProblem, toProblem } from "./batch-record.ts";

export const LINES_MAX = 50_000;
const EMBEDDING_INPUTS_MAX = 50_000;
/** Maximum number of problems that are reported; then the validation ends. */
export const PROBLEMS_MAX = 100;

export type ValidatedInput =
	| { readonly ok: true; readonly model: string; readonly total: number }
	| { readonly ok: false; readonly problems: readonly BatchProblem[] };

/** The model for this endpoint, or the problem why it accepts no lines. */
function deploymentFor(snapshot: CatalogSnapshot, name: string, endpoint: BatchEndpoint): Model | LineProblem {
	const model = findModel(snapshot, name);
	const param = "body.model";
	if (model === undefined) {
		const { id, values } = notFoundText(snapshot, name);
		return toProblem("model_not_found", param, id, values);
	}
	if (model.batch !== undefined && serves(model, endpoint)) return model;
	const text = "The model `{id}` does not support batches at {endpoint}: see `modes` at GET /v1/models.";
	return toProblem("unsupported_mode", param, text, { id: model.id, endpoint });
}

function serves(model: Model, endpoint: BatchEndpoint): boolean {
	if (endpoint === "/v1/embeddings") return model.kind === "embedding";
	if (model.kind !== "chat") return false;
	return model.modes.has(endpoint === "/v1/chat/completions" ? "chat" : "completions");
}

/** Validates a whole input in time slices, with bounded memory. Rejects if it cannot be read or `signal` aborts. */
export async function validateInput(
	bytes: ReadableStream<Uint8Array>,
	endpoint: BatchEndpoint,
	snapshot: CatalogSnapshot,
	signal: AbortSignal,
): Promise<ValidatedInput> {
	const problems: BatchProblem[] = [];
	const seen = new Set<string>();
	let first: { name: string; model: string | undefined } | undefined;
	let total = 0;
	let inputs = 0;
	const note = (problem: LineProblem, line: number | null) => void problems.push({ ...problem, line });

	for await (const { line, text } of inputLines(bytes)) {
		signal.throwIfAborted();
		if (problems.length >= PROBLEMS_MAX) break;
		total += 1;
		if (total > LINES_MAX) {
			note(toProblem("too_many_tasks", null, "A batch can have at most {count} lines.", { count: LINES_MAX }), line);
			break;
		}
		if (text === undefined) {
			note(toProblem("line_too_long", null, "The line has more than {count} bytes.", { count: LINE_BYTES_MAX }), line);
			continue;
		}
		const read = await readLine(text, endpoint);
		if ("code" in read) {
			note(read, line);
			continue;
		}
		const name = nameDigest(read.customId);
		if (seen.has(name)) note(DUPLICATE, line);
		seen.add(name);
		if (first === undefined) {
			const deployment = deploymentFor(snapshot, read.model, endpoint);
			if ("code" in deployment) note(deployment, line);
			first = { name: read.model, model: "code" in deployment ? undefined : deployment.id };
		} else if (read.model !== first.name && findModel(snapshot, read.model)?.id !== first.model) {
			const message = "All lines of a batch must name the same model, here `{id}`.";
			note(toProblem("model_mismatch", "body.model", message, { id: first.name.slice(0, 128) }), line);
		}
		if (endpoint === "/v1/embeddings") inputs += read.inputs;
		if (inputs > EMBEDDING_INPUTS_MAX) {
			const count = EMBEDDING_INPUTS_MAX;
			note(toProblem("too_many_inputs", "body.input", "A batch can have at most {count} inputs.", { count }), line);
			break;
		}
	}
	if (total === 0) note({ code: "empty_file", message: "The input file has no lines.", param: "input_file_id" }, null);
	if (problems.length > 0) return { ok: false, problems };
	return { ok: true, model: first?.model ?? "", total };
}

const DUPLICATE: LineProblem = {
	code: "duplicate_custom_id",
	message: "An earlier line has the same `custom_id`.",
	param: "custom_id",
};

/** Digest of a `custom_id`, because ids may be long and numerous. All lone surrogates are equal, as in UTF-8. */
function nameDigest(customId: string): string {
	return new Bun.CryptoHasher("sha256").update(customId, "utf16le").digest("base64").slice(0, 24);
}
