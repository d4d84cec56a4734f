/** Generates the management interface's part of the OpenAPI document from its routes. */
import type { TSchema } from "@sinclair/typebox";
import type { DescribeFailures, DocumentPart } from "../gateway/openapi/openapi.ts";
import { MANAGEMENT_QUERY, MANAGEMENT_ROUTES, type ManagementRoute } from "./management-routes.ts";
import { MANAGEMENT_ANSWERS, MANAGEMENT_REQUESTS } from "./management-schemas.ts";

type Json = Readonly<Record<string, unknown>>;

const IF_MATCH = {
	name: "If-Match",
	in: "header",
	required: false,
	schema: { type: "string" },
	description: "The `ETag` of an earlier response: 412 if the resource has changed since.",
};
const ID = { name: "id", in: "path", required: true, schema: { type: "string" } };
const ETAG = { description: "Identifies the version of the resource's changeable fields.", schema: { type: "string" } };

function token(isRequired: boolean): Json {
	return {
		name: "Idempotency-Key",
		in: "header",
		required: false,
		schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
		description: `A repetition with the same key creates nothing new. Same as the field \`client_token\`${isRequired ? "; one of them is required" : ""}.`,
	};
}

function operation(route: ManagementRoute, failures: DescribeFailures): Json {
	const query = route.query.map((name) => {
		const { description, ...schema }: TSchema = MANAGEMENT_QUERY[name];
		const required = ["from", "to"].includes(name) || (name === "account_id" && route.answer === "ManagementKeyList");
		return { name, in: "query", required, schema, ...(description === undefined ? {} : { description }) };
	});
	const parameters = [
		...(route.path.includes("{id}") ? [ID] : []),
		...query,
		...(route.token ? [token(route.body === "ManagementAdjustmentCreate")] : []),
		...(route.conditional ? [IF_MATCH] : []),
	];
	const content = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });
	const answer = {
		headers: { "x-request-id": { schema: { type: "string" } }, ...(route.conditional ? { etag: ETAG } : {}) },
		content: content(route.answer),
	};
	const late = { description: "Done, but not yet applied by all instances: see `in_force`.", ...answer };
	return {
		summary: route.summary,
		description: route.scope === null ? "Any management key." : `Scope \`${route.scope}\`.`,
		security: [{ managementKey: [] }],
		parameters,
		...(route.body === undefined
			? {}
			: { requestBody: { required: !mayBeLeftOut(route.body), content: content(route.body) } }),
		responses: {
			"200": { description: "OK.", ...answer },
			...(route.fenced ? { "202": late } : {}),
			...failures(
				...[400, 401, 403, 404],
				...(route.method === "GET" ? [] : [408, 409, 413, 415]),
				...(route.conditional ? [412] : []),
				...(route.token ? [422] : []),
				...[429, 500, 503],
			),
		},
	};
}

/** True if a request may omit the body, because all fields are optional. */
function mayBeLeftOut(body: keyof typeof MANAGEMENT_REQUESTS): boolean {
	return Object.keys(MANAGEMENT_REQUESTS[body].properties).length === 0;
}

export function managementDocument(failures: DescribeFailures): DocumentPart {
	const paths: Record<string, Record<string, Json>> = {};
	for (const route of Object.values(MANAGEMENT_ROUTES)) {
		paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, failures) };
	}
	const managementKey = {
		type: "http",
		scheme: "bearer",
		description:
			"`Authorization: Bearer tgm_…`: an operator's management key, with scopes. Only for `/v1/management/`, where API keys do not work.",
	};
	return { paths, securitySchemes: { managementKey }, schemas: { ...MANAGEMENT_REQUESTS, ...MANAGEMENT_ANSWERS } };
}
