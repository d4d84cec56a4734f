import { Skeleton, VisuallyHidden } from "@mantine/core";
import { t } from "../texts.tsx";

/** Skeleton of a page while its code or the viewer loads. */
export function PageWaiting() {
	return (
		<div className="page" aria-busy="true">
			<VisuallyHidden role="status">{t("Loading")}</VisuallyHidden>
			<Skeleton height={24} width={160} />
			<Skeleton height={120} />
			<Skeleton height={240} />
		</div>
	);
}
