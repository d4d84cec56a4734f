import { useEffect, useRef, useState } from "react";
import { brand } from "../brand.ts";
import { NotFoundPage } from "../pages/not-found.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { ApiReference } from "./api-reference.tsx";
import { BatchesSection } from "./batches.tsx";
import { ErrorsSection } from "./errors.tsx";
import { LimitsSection } from "./limits.tsx";
import { MovingSection } from "./moving.tsx";
import { QuickStartSection } from "./quick-start.tsx";
import { RolesSection } from "./roles.tsx";
import type { DocsSection } from "./search.tsx";
import { anchorOf, DocsSearch, sectionPath } from "./search.tsx";
import { ToolsSection } from "./tools.tsx";

const SECTIONS: readonly DocsSection[] = [
	{ id: "quick-start", title: t("Quick start"), body: QuickStartSection },
	{ id: "tools", title: t("Tools"), body: ToolsSection },
	{ id: "moving", title: t("Moving over"), body: MovingSection },
	{ id: "errors", title: t("Errors"), body: ErrorsSection },
	{ id: "batches", title: t("Batches"), body: BatchesSection },
	{ id: "limits", title: t("Limits"), body: LimitsSection },
	{ id: "roles", title: t("Roles"), body: RolesSection },
	{ id: "api", title: t("API reference"), body: ApiReference },
];

export default function DocsPage({ section }: { section: string }) {
	const shown = SECTIONS.find(({ id }) => id === section);
	const article = useRef<HTMLElement>(null);
	const [visits, setVisits] = useState(0);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the address is what is followed, also to where one is
	useEffect(() => goToHeading(article.current), [section, visits]);
	if (!shown) return <NotFoundPage />;
	const Body = shown.body;
	return (
		<div className="docs">
			<title>{`${shown.title} · ${t("Docs")} · ${brand.name}`}</title>
			<nav className="docs-nav" aria-label={t("Docs")}>
				<DocsSearch sections={SECTIONS} onGone={() => setVisits(visits + 1)} />
				{SECTIONS.map(({ id, title }) => (
					<Link key={id} to={sectionPath(id)} aria-current={id === shown.id ? "page" : undefined}>
						{title}
					</Link>
				))}
			</nav>
			<article className="prose" ref={article}>
				<h1>{shown.title}</h1>
				<Body />
			</article>
		</div>
	);
}

/** The one that the address names, if it does. */
function goToHeading(article: HTMLElement | null): void {
	if (article === null || location.hash === "") return;
	const heading = [...article.querySelectorAll<HTMLElement>("h2, h3")].find(
		({ textContent }) => `#${anchorOf(textContent ?? "")}` === location.hash,
	);
	if (heading === undefined) return;
	heading.tabIndex = -1;
	heading.focus({ preventScroll: true });
	heading.scrollIntoView();
}
