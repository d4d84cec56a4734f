import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Fault } from "../../base/fault.ts";
import { assertStorable } from "../../base/stored-text.ts";
import { BATCH_ENDPOINTS } from "../../batch/batch-record.ts";
import type { BatchRequest } from "../../batch/batches.ts";
import { assertBody, mapOf, optional } from "../request-fields.ts";

const METADATA_MAX = 16;
const METADATA_NAME_CHARS_MAX = 64;
const METADATA_VALUE_CHARS_MAX = 512;
const KEPT_S_MIN = 3_600;
const KEPT_S_MAX = 2_592_000;

/** Body of POST /v1/batches. */
export const BatchRequestBody = Type.Object(
	{
		input_file_id: Type.String({ minLength: 1, maxLength: 128, description: "A file of the purpose `batch`." }),
		endpoint: Type.Union(BATCH_ENDPOINTS.map((path) => Type.Literal(path))),
		completion_window: Type.Literal("24h"),
		metadata: optional(
			mapOf(Type.String({ maxLength: METADATA_VALUE_CHARS_MAX }), {
				maxProperties: METADATA_MAX,
				description: `Up to ${METADATA_MAX} pairs; names of at most ${METADATA_NAME_CHARS_MAX} characters.`,
			}),
		),
		output_expires_after: optional(
			Type.Object({
				anchor: Type.Literal("created_at"),
				seconds: Type.Integer({ minimum: KEPT_S_MIN, maximum: KEPT_S_MAX }),
			}),
		),
	},
	{ additionalProperties: true },
);

const check = TypeCompiler.Compile(BatchRequestBody);
/** Printable ASCII. */
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** Fault invalid_request, naming the field. */
export function readBatchRequest(body: unknown, idempotencyKey: string | null): BatchRequest {
	assertBody(check, body);
	const { input_file_id, endpoint, metadata, output_expires_after } = body;
	for (const name of Object.keys(metadata ?? {})) {
		if (name.length > METADATA_NAME_CHARS_MAX)
			throw new Fault("invalid_request", "A name in `metadata` is too long.", { param: "metadata" });
	}
	assertStorable({ metadata });
	if (idempotencyKey !== null && !IDEMPOTENCY_KEY.test(idempotencyKey))
		throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
	return {
		inputFileId: input_file_id,
		endpoint,
		metadata: metadata ?? null,
		outputExpiresS: output_expires_after?.seconds ?? null,
		idempotencyKey,
	};
}
