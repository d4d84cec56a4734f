import type { ReactNode } from "react";
import { ENGLISH } from "../../base/language.ts";
import { requestJson } from "../http.ts";
import { LoadState } from "../parts/page.tsx";
import { useResource } from "../resource.ts";
import { language, rich, t } from "../texts.tsx";

/** Parts of the OpenAPI document that the page shows. */
interface Schema {
	readonly type?: string;
	readonly description?: string;
	readonly properties?: Readonly<Record<string, Schema>>;
	readonly required?: readonly string[];
	readonly items?: Schema;
	readonly enum?: readonly unknown[];
	readonly const?: unknown;
	readonly $ref?: string;
	readonly anyOf?: readonly Schema[];
}

interface Media {
	readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
	readonly description?: string;
}

interface Operation {
	readonly summary?: string;
	readonly description?: string;
	readonly parameters?: readonly {
		readonly name: string;
		readonly in: string;
		readonly required?: boolean;
		readonly description?: string;
	}[];
	readonly requestBody?: Media;
	readonly responses: Readonly<Record<string, Media>>;
}

interface Document {
	readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
	readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

type Resolve = (schema: Schema | undefined) => Schema;

/** Depth at which nested schemas are cut off, because schemas may be recursive. */
const DEPTH_MAX = 5;

export function ApiReference() {
	const document = useResource("openapi", () => requestJson<Document>("/openapi.json"));
	const { paths = {}, components } = document.data ?? {};
	const resolve: Resolve = (schema = {}) =>
		schema.$ref === undefined ? schema : (components?.schemas[schema.$ref.split("/").pop() ?? ""] ?? {});
	return (
		<>
			<p>
				{rich("From <link>/openapi.json</link>. Every request carries {code}.", {
					link: (inner) => <a href="/openapi.json">{inner}</a>,
					code: <code>Authorization: Bearer API_KEY</code>,
				})}
			</p>
			{language !== ENGLISH && <p>{t("Descriptions are in English.")}</p>}
			<LoadState of={document} height={240} />
			{Object.entries(paths).flatMap(([path, methods]) =>
				Object.entries(methods).map(([method, operation]) => (
					<OperationView key={`${method} ${path}`} {...{ method, path, operation, resolve }} />
				)),
			)}
		</>
	);
}

function OperationView(props: { method: string; path: string; operation: Operation; resolve: Resolve }) {
	const { operation, resolve } = props;
	const { summary, description, parameters = [], requestBody, responses } = operation;
	const [bodyType, body] = Object.entries(requestBody?.content ?? {})[0] ?? [];
	return (
		<details>
			<summary>
				<strong>{props.method.toUpperCase()}</strong> <code>{props.path}</code>
				{summary && <span className="dim"> {plain(summary)}</span>}
			</summary>
			{description && <p>{plain(description)}</p>}
			{parameters.length > 0 && (
				<>
					<h3>{t("Parameters")}</h3>
					<ul>
						{parameters.map((parameter) => (
							<li key={`${parameter.in} ${parameter.name}`}>
								<code>{parameter.name}</code> <span className="dim">{t("in {place}", { place: parameter.in })}</span>
								{parameter.required && t(", required")}
								{parameter.description && `: ${parameter.description}`}
							</li>
						))}
					</ul>
				</>
			)}
			{body && (
				<>
					<h3>{rich("Request body: {type}", { type: <span className="dim">{bodyType}</span> })}</h3>
					<SchemaView schema={body.schema} resolve={resolve} />
				</>
			)}
			<h3>{t("Responses")}</h3>
			{Object.entries(responses).map(([status, response]) => (
				<div key={status}>
					<strong>{status}</strong> {response.description}
					<SchemaView schema={Object.values(response.content ?? {})[0]?.schema} resolve={resolve} />
				</div>
			))}
		</details>
	);
}

function SchemaView(props: { schema: Schema | undefined; resolve: Resolve; depth?: number }): ReactNode {
	const { resolve, depth = 0 } = props;
	const schema = resolve(props.schema);
	const shown = schema.properties ? schema : resolve(schema.items);
	const fields = Object.entries(shown.properties ?? {});
	if (fields.length === 0) return schema.description && <p className="dim">{schema.description}</p>;
	return (
		<ul>
			{fields.map(([name, field]) => {
				const inner = resolve(field);
				return (
					<li key={name}>
						<code>{name}</code> <span className="dim">{typeText(field, resolve)}</span>
						{shown.required?.includes(name) && t(", required")}
						{inner.description && `: ${inner.description}`}
						{(inner.properties ?? resolve(inner.items).properties) && depth < DEPTH_MAX && (
							<SchemaView schema={inner} resolve={resolve} depth={depth + 1} />
						)}
					</li>
				);
			})}
		</ul>
	);
}

const plain = (text: string): string => text.replaceAll("`", "");

function typeText(schema: Schema, resolve: Resolve): string {
	const shown = resolve(schema);
	if (shown.const !== undefined) return JSON.stringify(shown.const);
	if (shown.enum) return shown.enum.map((value) => JSON.stringify(value)).join(" | ");
	if (shown.anyOf) return [...new Set(shown.anyOf.map((part) => typeText(part, resolve)))].join(" | ");
	if (shown.type === "array") return t("list of {items}", { items: typeText(shown.items ?? {}, resolve) });
	return shown.type ?? (shown.properties ? "object" : "any");
}
