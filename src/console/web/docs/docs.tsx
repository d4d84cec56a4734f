import type { ReactNode } from "react";
import { brand } from "../brand.ts";
import { NotFoundPage } from "../pages/not-found.tsx";
import { Link } from "../router.tsx";
import { ApiReference } from "./api-reference.tsx";
import { BatchesSection } from "./batches.tsx";
import { ErrorsSection } from "./errors.tsx";
import { LimitsSection } from "./limits.tsx";
import { MovingSection } from "./moving.tsx";
import { QuickStartSection } from "./quick-start.tsx";
import { RolesSection } from "./roles.tsx";

const SECTIONS: readonly { readonly id: string; readonly title: string; readonly body: () => ReactNode }[] = [
	{ id: "quick-start", title: "Quick start", body: QuickStartSection },
	{ id: "moving", title: "Moving over", body: MovingSection },
	{ id: "errors", title: "Errors", body: ErrorsSection },
	{ id: "batches", title: "Batches", body: BatchesSection },
	{ id: "limits", title: "Limits", body: LimitsSection },
	{ id: "roles", title: "Roles", body: RolesSection },
	{ id: "api", title: "API reference", body: ApiReference },
];

export default function DocsPage({ section }: { section: string }) {
	const shown = SECTIONS.find(({ id }) => id === section);
	if (!shown) return <NotFoundPage />;
	const Body = shown.body;
	return (
		<div className="docs">
			<title>{`${shown.title} · Docs · ${brand.name}`}</title>
			<nav className="docs-nav" aria-label="Docs">
				{SECTIONS.map(({ id, title }) => (
					<Link
						key={id}
						to={id === "quick-start" ? "/docs" : `/docs/${id}`}
						aria-current={id === shown.id ? "page" : undefined}
					>
						{title}
					</Link>
				))}
			</nav>
			<article className="prose">
				<h1>{shown.title}</h1>
				<Body />
			</article>
		</div>
	);
}
