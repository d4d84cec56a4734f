import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import { Link } from "../router.tsx";
import { rich, t } from "../texts.tsx";
import { Icon } from "./icons.tsx";
import { Id } from "./text.tsx";

/** What failed, in the service's words, with the request's id for whoever is asked for help. */
export function Problem({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
	return (
		<div className="problem" role="alert">
			<Icon name="warning" />
			<div className="problem-text">
				<div>{error.message}</div>
				{error.code === "second_factor_required" && <Link to="/settings">{t("Go to your settings")}</Link>}
				{error.requestId && (
					<div className="small">
						{rich("Request {requestId}", {
							requestId: <Id value={error.requestId} label={t("Copy the request's id")} />,
						})}
					</div>
				)}
			</div>
			{retry && (
				<Button size="xs" variant="default" onClick={retry}>
					{t("Try again")}
				</Button>
			)}
		</div>
	);
}

export function Notice({ kind = "info", children }: { kind?: "info" | "ok" | "warn"; children: ReactNode }) {
	return (
		<div className={`notice notice-${kind}`} role="status">
			{children}
		</div>
	);
}

/** An empty place says what would be here and how to get it. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
	return (
		<div className="empty">
			<p className="empty-title">{title}</p>
			{children && <p className="dim">{children}</p>}
			{action}
		</div>
	);
}
