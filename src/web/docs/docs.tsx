import { NavLink, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { brand } from "../brand.ts";
import { NotFoundPage } from "../pages/refused-pages.tsx";
import { SearchField } from "../parts/fields.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { ApiReference } from "./api-reference.tsx";
import { type DocsNode, DocsText, splitPassages } from "./docs-text.tsx";

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
			<SearchField
				label={t("Search the docs")}
				placeholder={t("Search (press /)")}
				value={wanted}
				onChange={setWanted}
			/>
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
