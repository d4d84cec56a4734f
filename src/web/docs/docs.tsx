import { NavLink } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { brand } from "../brand.ts";
import { NotFoundPage } from "../pages/refused-pages.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { ApiReference } from "./api-reference.tsx";
import { type DocsNode, DocsText } from "./docs-text.tsx";
import { anchorOf, DocsSearch, type DocsSection, sectionPath } from "./search.tsx";

const TITLES = {
	"quick-start": t("Quick start"),
	tools: t("Tools"),
	moving: t("Moving over"),
	errors: t("Errors"),
	batches: t("Batches"),
	limits: t("Limits"),
	roles: t("Roles"),
} as const;

/** The docs of one language. `texts`: pages by title; the API reference is drawn from the OpenAPI document. */
export function createDocsPage(texts: Readonly<Record<keyof typeof TITLES, readonly DocsNode[]>>) {
	const sections: DocsSection[] = (Object.keys(TITLES) as (keyof typeof TITLES)[]).map((id) => ({
		id,
		title: TITLES[id],
		body: () => <DocsText nodes={texts[id]} />,
	}));
	sections.push({ id: "api", title: t("API reference"), body: ApiReference });
	return ({ section }: { section: string }) => <DocsPage sections={sections} section={section} />;
}

function DocsPage({ sections, section }: { sections: readonly DocsSection[]; section: string }) {
	const shown = section === "" ? sections[0] : sections.find(({ id }) => id === section);
	const article = useRef<HTMLElement>(null);
	const [visits, setVisits] = useState(0);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the address is what is followed, also to where one is
	useEffect(() => goToHeading(article.current), [section, visits]);
	if (!shown) return <NotFoundPage />;
	const Body = shown.body;
	return (
		<div className="docs">
			<title>{`${shown.title} · ${t("Docs")} · ${brand.name}`}</title>
			<nav aria-label={t("Docs")}>
				<DocsSearch sections={sections} onGone={() => setVisits(visits + 1)} />
				{sections.map(({ id, title }) => (
					<NavLink
						key={id}
						component={Link}
						to={sectionPath(id)}
						aria-current={id === shown.id ? "page" : undefined}
						label={title}
						py={4}
					/>
				))}
			</nav>
			<article className="prose" ref={article}>
				<h1>{shown.title}</h1>
				<Body />
			</article>
		</div>
	);
}

/** The page in the address. */
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
