import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { addText, measureText, promptTokensEstimate, promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { assertBody, honouredFields, optional } from "../request-fields.ts";

const DOCUMENTS_MAX = 10_000;
/** A search is a query over at most so many documents, the unit that rerank services sell. */
const DOCUMENTS_A_SEARCH = 100;

const RerankDocument = Type.Union([
	Type.String(),
	Type.Object({ text: Type.String() }, { additionalProperties: true }),
]);

/** Body of POST /v1/rerank. Other fields are dropped unless the deployment lists them. */
export const RerankRequestBody = Type.Object(
	{
		model: Type.String({ minLength: 1, description: "ID of a connected rerank deployment." }),
		query: Type.String({ minLength: 1 }),
		documents: Type.Array(RerankDocument, { minItems: 1, maxItems: DOCUMENTS_MAX }),
		top_n: optional(Type.Integer({ minimum: 1 })),
		return_documents: optional(Type.Boolean()),
	},
	{ additionalProperties: true },
);

const check = TypeCompiler.Compile(RerankRequestBody);

export type RerankInput = ReturnType<typeof readRerankRequest>;

/** Faults: invalid_request and unsupported_parameter, each naming the field. */
export function readRerankRequest(body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	const documents = body.documents.map((document) => (typeof document === "string" ? document : document.text));
	const query = measureText(body.query, model);
	let tokensMax = 0;
	let tokensEstimate = 0;
	for (const document of documents) {
		// Each document is read together with the query.
		const text = { ...query };
		addText(text, document, model);
		const measure = { ...text, messages: 1, images: 0, hasTools: false };
		tokensMax += promptTokensMax(measure, model);
		tokensEstimate += promptTokensEstimate(measure, model);
	}
	return {
		query: body.query,
		documents,
		topN: Math.min(body.top_n ?? documents.length, documents.length),
		returnDocuments: body.return_documents === true,
		searches: Math.ceil(documents.length / DOCUMENTS_A_SEARCH),
		...honouredFields(body, model, OWN_FIELDS.rerank),
		/** Upper bound and estimate of all tokens. */
		promptTokensMax: tokensMax,
		promptTokensEstimate: tokensEstimate,
	};
}
