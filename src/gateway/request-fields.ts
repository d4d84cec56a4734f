/** Rules for all bodies: null means absent; unknown fields are sent on if the catalogue lists them for the model. */
import { type ObjectOptions, type Static, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { Fault } from "../base/fault.ts";
import type { Model } from "../catalog/model.ts";
import { isEssentialField } from "../catalog/request-fields.ts";
import { bodyProblem } from "./body/body-problem.ts";
import { EXACT_NUMBERS, type WithExactNumbers } from "./exact-numbers.ts";

/** A field that may be absent or null, with the same meaning. */
export const nullish = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

export const openObject = <T extends TProperties>(members: T) => Type.Object(members, { additionalProperties: true });

/** A request body that names a model. Other fields are dropped unless the catalogue lists them for the model. */
export const requestBody = <T extends TProperties>(fields: T) =>
	openObject({ model: Type.String({ minLength: 1, description: "ID of a model: see GET /v1/models." }), ...fields });

export const shortText = (maxLength: number) => nullish(Type.String({ maxLength }));

/** Matches any name. TypeBox's default pattern for records does not match names with a line break. */
const ANY_NAME = Type.String({ pattern: "^[\\s\\S]*$" });

/** A map whose values have one schema. Instead, `additionalProperties` would allocate a scope per check. */
export const mapSchema = <T extends TSchema>(member: T, options: ObjectOptions = {}) =>
	Type.Record(ANY_NAME, member, options);

const BIASES_MAX = 1_024;

export const GENERATION_FIELDS = {
	stream: nullish(Type.Boolean()),
	stream_options: nullish(openObject({ include_usage: nullish(Type.Boolean()) })),
	max_tokens: nullish(Type.Integer({ minimum: 1 })),
	max_completion_tokens: nullish(Type.Integer({ minimum: 1 })),
	n: nullish(Type.Integer({ minimum: 1, maximum: 128 })),
	temperature: nullish(Type.Number({ minimum: 0, maximum: 2 })),
	top_p: nullish(Type.Number({ minimum: 0, maximum: 1 })),
	frequency_penalty: nullish(Type.Number({ minimum: -2, maximum: 2 })),
	presence_penalty: nullish(Type.Number({ minimum: -2, maximum: 2 })),
	seed: nullish(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 64 })),
	stop: nullish(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 16 })])),
	logit_bias: nullish(mapSchema(Type.Number({ minimum: -100, maximum: 100 }), { maxProperties: BIASES_MAX })),
	user: nullish(Type.String()),
};

const LISTS = ["stop", "tools", "functions"] as const;
const CHOOSES_FREELY: ReadonlySet<unknown> = new Set(["auto", "none"]);

/** Removes empty lists and maps, and `tool_choice` without tools: some clients always send them. */
export function removeEmpty(body: Record<string, unknown>): void {
	for (const name of LISTS) {
		const list = body[name];
		if (Array.isArray(list) && list.length === 0) delete body[name];
	}
	const { logit_bias: bias } = body;
	if (typeof bias === "object" && !Array.isArray(bias) && Object.keys(bias ?? {}).length === 0) delete body.logit_bias;
	if (body.tools || body.functions) return;
	if (typeof body.parallel_tool_calls === "boolean") delete body.parallel_tool_calls;
	if (CHOOSES_FREELY.has(body.tool_choice)) delete body.tool_choice;
	if (CHOOSES_FREELY.has(body.function_call)) delete body.function_call;
}

/** Reads the model's name before the other fields are checked. Fault invalid_request. */
export function readModelName(body: Readonly<Record<string, unknown>>): string {
	if (typeof body.model !== "string" || body.model === "")
		throw new Fault("invalid_request", "`model` must be the ID of a model: see GET /v1/models.", { param: "model" });
	return body.model;
}

/** Fault invalid_request, naming the first wrong field. */
export function assertBody<T extends TSchema>(check: TypeCheck<T>, body: unknown): asserts body is Static<T> {
	if (check.Check(body)) return;
	const { param, message } = bodyProblem(check.Schema(), body);
	throw new Fault("invalid_request", message, { param });
}

export function assertStreamOptions(body: { stream?: boolean | null; stream_options?: object | null }): void {
	if (!body.stream_options || body.stream === true) return;
	throw new Fault("invalid_request", "`stream_options` is only allowed when `stream` is true.", {
		param: "stream_options",
	});
}

export function limitsOutput(model: Model): boolean {
	return model.parameters.has("max_tokens") || model.parameters.has("max_completion_tokens");
}

const NO_FIELDS: readonly string[] = [];

/**
 * Returns the optional fields that the model supports, and the names of the ignored fields. `own`: fields that the
 * endpoint reads itself; they count as supported unless listed in `unsupported`. Fault unsupported_parameter.
 */
export function supportedFields(
	body: Readonly<Record<string, unknown>>,
	model: Model,
	own: ReadonlySet<string>,
	unsupported: readonly string[] = NO_FIELDS,
) {
	const fields: Record<string, unknown> = {};
	const exact = (body as WithExactNumbers)[EXACT_NUMBERS];
	let ignored: string[] | undefined;
	for (const name in body) {
		const value = body[name];
		if (value === null || value === undefined) continue;
		const isOwn = own.has(name);
		if (isOwn ? !unsupported.includes(name) : model.parameters.has(name)) {
			if (!isOwn) fields[name] = exact?.[name] ?? value;
		} else if (ignored === undefined) ignored = [name];
		else ignored.push(name);
	}
	if (ignored !== undefined) assertNoneRefused(ignored, body, model);
	return { fields, ignored: ignored ?? NO_FIELDS };
}

/** A separate function: a closure in `supportedFields` would keep its variables alive for every request. */
function assertNoneRefused(ignored: readonly string[], body: Readonly<Record<string, unknown>>, model: Model): void {
	const refused = ignored.find((name) => isRefused(model, name, body[name]));
	if (refused === undefined) return;
	throw new Fault("unsupported_parameter", `The model \`${model.id}\` does not support this parameter.`, {
		param: refused.slice(0, 64),
	});
}

function isRefused({ unsupportedParameters, kind }: Model, name: string, value: unknown): boolean {
	if (unsupportedParameters === "reject_essential") return isEssentialField(kind, name, value);
	return unsupportedParameters === "reject";
}

const CHOICES: readonly string[] = ["n"];

/** Names of those of `n`, `max_tokens` and `max_completion_tokens` that the model does not support. */
export function unsupportedLimits({ n }: { n?: number | null }, model: Model): readonly string[] {
	const choices = n === 1 || model.parameters.has("n") ? NO_FIELDS : CHOICES;
	return limitsOutput(model) ? choices : [...choices, "max_tokens", "max_completion_tokens"];
}
