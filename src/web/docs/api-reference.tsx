import type { ReactNode } from "react";
import { ENGLISH } from "../../base/language.ts";
import { requestJson } from "../http.ts";
import { Empty, Reading } from "../parts/problem.tsx";
import { useResource } from "../resource.ts";
import { language, rich, t } from "../texts.tsx";

/** The displayed part of an OpenAPI document. Anything may be missing. */
interface Schema {
	readonly type?: string | readonly string[];
	readonly description?: string;
	readonly properties?: Readonly<Record<string, Schema>>;
	readonly required?: readonly string[];
	readonly items?: Schema;
	readonly enum?: readonly unknown[];
	readonly $ref?: string;
	readonly anyOf?: readonly Schema[];
	readonly oneOf?: readonly Schema[];
	readonly default?: unknown;
}

interface Media {
	readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
	readonly description?: string;
}

interface Operation {
	readonly summary?: string;
	readonly description?: string;
	readonly parameters?: readonly {
		readonly name?: string;
		readonly in?: string;
		readonly required?: boolean;
		readonly description?: string;
		readonly schema?: Schema;
	}[];
	readonly requestBody?: Media;
	readonly responses?: Readonly<Record<string, Media & { readonly $ref?: string }>>;
}

interface Document {
	readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
	readonly components?: {
		readonly schemas?: Readonly<Record<string, Schema>>;
		readonly responses?: Readonly<Record<string, Media>>;
	};
}

const METHODS = ["get", "post", "put", "patch", "delete"];
/** Recursive schemas end here. */
const DEPTH_MAX = 5;

export function ApiReference() {
	const document = useResource("openapi", () => requestJson<Document>("/openapi.json"));
	const paths = Object.entries(document.data?.paths ?? {});
	return (
		<>
			<p>
				{rich("From <link>/openapi.json</link>. Every request carries {code}.", {
					link: (inner) => <a href="/openapi.json">{inner}</a>,
					code: <code>Authorization: Bearer API_KEY</code>,
				})}
			</p>
			{language !== ENGLISH && <p>{t("Its descriptions are in English, as the interface itself is.")}</p>}
			<Reading of={document} height={240} />
			{document.data && paths.length === 0 && (
				<Empty title={t("This service does not publish a description of its interface.")} />
			)}
			{document.data &&
				paths.flatMap(([path, methods]) =>
					METHODS.flatMap((method) => {
						const operation = methods[method];
						return operation
							? [
									<OperationView
										key={`${method} ${path}`}
										method={method}
										path={path}
										operation={operation}
										document={document.data ?? {}}
									/>,
								]
							: [];
					}),
				)}
		</>
	);
}

function OperationView(props: { method: string; path: string; operation: Operation; document: Document }) {
	const { operation, document } = props;
	const [bodyType, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
	return (
		<details>
			<summary>
				<strong>{props.method.toUpperCase()}</strong> <code>{props.path}</code>
				{operation.summary && <span className="dim"> {plain(operation.summary)}</span>}
			</summary>
			{operation.description && <p>{plain(operation.description)}</p>}
			{operation.parameters && operation.parameters.length > 0 && (
				<>
					<h3>{t("Parameters")}</h3>
					<ul>
						{operation.parameters.map((parameter) => (
							<li key={`${parameter.in} ${parameter.name}`}>
								<code>{parameter.name}</code>{" "}
								<span className="dim">{t("in {place}", { place: parameter.in ?? "" })}</span>
								{parameter.required && t(", required")}
								{parameter.description && `: ${parameter.description}`}
							</li>
						))}
					</ul>
				</>
			)}
			{body?.schema && (
				<>
					<h3>{rich("Body {type}", { type: <span className="dim">{bodyType}</span> })}</h3>
					<SchemaView schema={body.schema} document={document} depth={0} />
				</>
			)}
			<h3>{t("Answers")}</h3>
			{Object.entries(operation.responses ?? {}).map(([status, given]) => {
				const response = given.$ref
					? (document.components?.responses?.[given.$ref.split("/").pop() ?? ""] ?? given)
					: given;
				const schema = Object.values(response.content ?? {})[0]?.schema;
				return (
					<div key={status}>
						<strong>{status}</strong> {response.description}
						{schema && <SchemaView schema={schema} document={document} depth={0} />}
					</div>
				);
			})}
		</details>
	);
}

function SchemaView({ schema, document, depth }: { schema: Schema; document: Document; depth: number }): ReactNode {
	const shown = resolved(schema, document);
	const fields = Object.entries(shown.properties ?? resolved(shown.items ?? {}, document).properties ?? {});
	if (fields.length === 0) {
		return shown.description ? <p className="dim">{shown.description}</p> : null;
	}
	return (
		<ul>
			{fields.map(([name, field]) => {
				const inner = resolved(field, document);
				const nested = inner.properties ?? resolved(inner.items ?? {}, document).properties;
				return (
					<li key={name}>
						<code>{name}</code> <span className="dim">{typeText(field, document)}</span>
						{shown.required?.includes(name) && t(", required")}
						{inner.description && `: ${inner.description}`}
						{nested && depth < DEPTH_MAX && <SchemaView schema={inner} document={document} depth={depth + 1} />}
					</li>
				);
			})}
		</ul>
	);
}

/** Descriptions are Markdown, of which only code marks occur. */
const plain = (text: string): string => text.replaceAll("`", "");

function typeText(schema: Schema, document: Document): string {
	const shown = resolved(schema, document);
	if (shown.enum) return shown.enum.map((value) => JSON.stringify(value)).join(" | ");
	const parts = shown.anyOf ?? shown.oneOf;
	if (parts) return [...new Set(parts.map((part) => typeText(part, document)))].join(" | ");
	if (shown.type === "array")
		return t("list of {items}", { items: shown.items ? typeText(shown.items, document) : t("values") });
	return Array.isArray(shown.type)
		? shown.type.join(" | ")
		: String(shown.type ?? (shown.properties ? "object" : "any"));
}

function resolved(schema: Schema, document: Document): Schema {
	if (!schema.$ref) return schema;
	return document.components?.schemas?.[schema.$ref.split("/").pop() ?? ""] ?? {};
}
