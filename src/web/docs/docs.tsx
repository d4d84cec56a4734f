import { NavLink, Stack } from "@mantine/core";
import { createElement, type ReactNode, useEffect, useState } from "react";
import { RIGHTS, type Right, ROLES } from "../../console/views.ts";
import { brand } from "../brand.ts";
import { rightText, roleName } from "../labels.ts";
import { NotFoundPage } from "../pages/refused-pages.tsx";
import { CodeBlock, CodeTabs } from "../parts/code.tsx";
import { SearchField } from "../parts/fields.tsx";
import { DataTable } from "../parts/table.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import batchJavascript from "../snippets/batch.mjs" with { type: "text" };
import batchPython from "../snippets/batch.py" with { type: "text" };
import changeJavascript from "../snippets/change.mjs" with { type: "text" };
import changePython from "../snippets/change.py" with { type: "text" };
import { chatSnippets, KEY_VARIABLE } from "../snippets/chat.ts";
import { ToolSteps, useToolValues } from "../snippets/tool-choice.tsx";
import { fillSnippet, TOOLS } from "../snippets/tools.ts";
import webhookJavascript from "../snippets/webhook.mjs" with { type: "text" };
import webhookPython from "../snippets/webhook.py" with { type: "text" };
import { showUsd, t } from "../texts.tsx";
import { ApiReference } from "./api-reference.tsx";

const TITLES = {
	"quick-start": t("Quick start"),
	tools: t("Tools"),
	moving: t("Migration"),
	errors: t("Errors"),
	batches: t("Batches"),
	limits: t("Limits"),
	roles: t("Roles"),
	api: t("API reference"),
} as const;

type Section = keyof typeof TITLES;
const isSection = (id: string): id is Section => Object.hasOwn(TITLES, id);
const SECTIONS = Object.keys(TITLES).filter(isSection);

type Texts = Readonly<Record<Exclude<Section, "api">, readonly DocsNode[]>>;
const pathOf = (id: Section): string => (id === "quick-start" ? "/docs" : `/docs/${id}`);

/** Creates the docs page of one language. The API reference is drawn from the OpenAPI document. */
export const createDocsPage =
	(texts: Texts) =>
	({ section }: { section: string }) => {
		const shown = section === "" ? "quick-start" : section;
		if (!isSection(shown)) return <NotFoundPage />;
		return (
			<div className="docs">
				<title>{`${TITLES[shown]} · ${t("Docs")} · ${brand.name}`}</title>
				<nav aria-label={t("Docs")}>
					<DocsSearch texts={texts} />
					{SECTIONS.map((id) => (
						<NavLink
							key={id}
							component={Link}
							to={pathOf(id)}
							aria-current={id === shown ? "page" : undefined}
							label={TITLES[id]}
							py={4}
						/>
					))}
				</nav>
				<article className="prose">
					<h1>{TITLES[shown]}</h1>
					{shown === "api" ? <ApiReference /> : <DocsText nodes={texts[shown]} />}
				</article>
			</div>
		);
	};

/** Search of the docs: at most twelve passages that contain all words, headings first. */
function DocsSearch({ texts }: { texts: Texts }) {
	const [wanted, setWanted] = useState("");
	useEffect(focusHeading, []);
	const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
	const has = (text: string) => words.every((word) => text.toLowerCase().includes(word));
	const found = SECTIONS.flatMap((id) => splitPassages(id === "api" ? [] : texts[id], pathOf(id), TITLES[id]))
		.filter(({ heading, text }) => has(heading + text))
		.sort((one, other) => Number(has(other.heading)) - Number(has(one.heading)))
		.slice(0, 12);
	const leave = () => {
		setWanted("");
		setTimeout(focusHeading);
	};
	return (
		<search>
			<SearchField label={t("Search the docs")} value={wanted} onChange={setWanted} />
			{words.length > 0 && (
				<Stack component="ul" className="bare" gap="xs" my="xs" aria-label={t("Results")} aria-live="polite">
					{found.map(({ to, heading }) => (
						<li key={to}>
							<Link to={to} onClick={leave}>
								{heading}
							</Link>
						</li>
					))}
					{found.length === 0 && <li className="dim">{t("No results.")}</li>}
				</Stack>
			)}
		</search>
	);
}

const focusHeading = () => document.getElementById(location.hash.slice(1))?.focus();

/** React elements as data: `bundle.ts` makes them from Markdown. */
export type DocsNode =
	| string
	| {
			readonly type: string;
			readonly props: { readonly children?: readonly DocsNode[]; readonly href?: string; readonly language?: string };
	  };

/** Splits a page into one passage per heading. Text before the first heading gets the page's title. */
function splitPassages(nodes: readonly DocsNode[], to: string, title: string) {
	const passages = [{ to, heading: title, text: title }];
	for (const node of nodes) {
		const text = textOf(node);
		const last = passages.at(-1);
		if (isHeading(node)) passages.push({ to: `${to}#${anchorOf(text)}`, heading: `${title}: ${text}`, text });
		else if (last) last.text += ` ${text}`;
	}
	return passages;
}

const isHeading = (node: DocsNode): boolean => typeof node !== "string" && /^h[23]$/.test(node.type);
const anchorOf = (heading: string): string => heading.toLowerCase().replace(/[^a-z0-9]+/g, "-");
const textOf = (node: DocsNode): string =>
	typeof node === "string" ? node : (node.props.children ?? []).map(textOf).join("");

/** Draws a page. `{{name}}` becomes a value of this service; a code block with language `show` names a component. */
function DocsText({ nodes }: { nodes: readonly DocsNode[] }) {
	const { config } = useSession();
	const values: Readonly<Record<string, string>> = {
		baseUrl: config.baseUrl,
		serviceName: config.serviceName,
		keyVariable: KEY_VARIABLE,
		topUpMin: showUsd(config.topUpMinNanoUsd),
		topUpMax: showUsd(config.topUpMaxNanoUsd),
	};
	return drawAll(nodes, (text) => text.replace(/\{\{(\w+)\}\}/g, (mark, name: string) => values[name] ?? mark));
}

type Fill = (text: string) => string;

const drawAll = (nodes: readonly DocsNode[] = [], fill: Fill): ReactNode[] =>
	nodes.map((node, place) => (typeof node === "string" ? fill(node) : draw(node, fill, place)));

function draw(node: Exclude<DocsNode, string>, fill: Fill, key: number): ReactNode {
	const { type, props } = node;
	const { children, href = "", language } = props;
	if (type === "pre") {
		const text = fill((children ?? []).join("")).trimEnd();
		const Shown = language === "show" ? PARTS[text] : undefined;
		return Shown ? <Shown key={key} /> : <CodeBlock key={key} code={text} />;
	}
	const inner = drawAll(children, fill);
	// The address is outside the console's router, so the browser loads it as a new document.
	if (type === "a" && href.startsWith("/") && href !== "/status")
		return (
			<Link key={key} to={href}>
				{inner}
			</Link>
		);
	if (type === "table")
		return (
			// biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
			<div key={key} className="table-room" tabIndex={0}>
				<table className="data cards">{inner}</table>
			</div>
		);
	const heading = isHeading(node) ? { id: anchorOf(textOf(node)), tabIndex: -1 } : {};
	return createElement(type, { key, ...(type === "a" ? { href } : {}), ...heading }, ...inner);
}

const PARTS: Readonly<Record<string, () => ReactNode>> = {
	chat: () => <ChatSnippets stream={false} />,
	"streamed-chat": () => <ChatSnippets stream />,
	tools: AllTools,
	roles: RoleTable,
	change: () => (
		<FileTabs
			files={{
				Python: changePython,
				TypeScript: changeJavascript,
				Environment: `OPENAI_BASE_URL={{baseUrl}}\nOPENAI_API_KEY=$${KEY_VARIABLE}`,
			}}
		/>
	),
	batch: () => <FileTabs files={{ Python: batchPython, TypeScript: batchJavascript }} />,
	webhook: () => <FileTabs files={{ Python: webhookPython, TypeScript: webhookJavascript }} />,
};

function ChatSnippets({ stream }: { stream: boolean }) {
	const { baseUrl, model, question } = useToolValues();
	return (
		<CodeTabs snippets={chatSnippets({ baseUrl, model, messages: [{ role: "user", content: question }], stream })} />
	);
}

function FileTabs({ files }: { files: Readonly<Record<string, string>> }) {
	const { config } = useSession();
	const snippets = Object.entries(files).map(([label, file]) => ({
		label,
		code: fillSnippet(file, { baseUrl: config.baseUrl }),
	}));
	return <CodeTabs snippets={snippets} />;
}

function AllTools() {
	const facts = useToolValues();
	return TOOLS.map((tool) => (
		<section key={tool.id}>
			<h2>{tool.name}</h2>
			<ToolSteps tool={tool} facts={facts} />
		</section>
	));
}

const ROWS = Object.entries(RIGHTS).map(([id, { roles }]) => ({ id, roles }));
const CELLS = { all: t("yes"), own: t("own") } as const;

function RoleTable() {
	return (
		<DataTable
			label={t("What each role may do")}
			rows={ROWS}
			columns={[
				{ label: t("Permission"), lead: true, render: (row) => rightText(row.id as Right) },
				...ROLES.map((role) => ({
					label: roleName(role),
					render: (row: (typeof ROWS)[number]) => {
						const scope = row.roles[role];
						return scope === undefined ? <span className="dim">–</span> : CELLS[scope];
					},
				})),
			]}
		/>
	);
}
