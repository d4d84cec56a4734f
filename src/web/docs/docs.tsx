import { NavLink } from "@mantine/core";
import { brand } from "../brand.ts";
import { NotFoundPage } from "../pages/refused-pages.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { ApiReference } from "./api-reference.tsx";
import { type DocsNode, DocsText } from "./docs-text.tsx";

const TITLES = {
	"quick-start": t("Quick start"),
	tools: t("Tools"),
	moving: t("Moving over"),
	errors: t("Errors"),
	batches: t("Batches"),
	limits: t("Limits"),
	roles: t("Roles"),
	api: t("API reference"),
} as const;

type Section = keyof typeof TITLES;
const isSection = (id: string): id is Section => Object.hasOwn(TITLES, id);
const SECTIONS = Object.keys(TITLES).filter(isSection);

/** The docs of one language. The API reference is drawn from the OpenAPI document. */
export const createDocsPage =
	(texts: Readonly<Record<Exclude<Section, "api">, readonly DocsNode[]>>) =>
	({ section }: { section: string }) => {
		const shown = section === "" ? "quick-start" : section;
		if (!isSection(shown)) return <NotFoundPage />;
		return (
			<div className="docs">
				<title>{`${TITLES[shown]} · ${t("Docs")} · ${brand.name}`}</title>
				<nav aria-label={t("Docs")}>
					{SECTIONS.map((id) => (
						<NavLink
							key={id}
							component={Link}
							to={id === "quick-start" ? "/docs" : `/docs/${id}`}
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
