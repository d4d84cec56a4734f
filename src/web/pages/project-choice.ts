import { api } from "../api.ts";
import { useResource } from "../resource.ts";
import { useAccount, useMay } from "../session.tsx";
import type { ProjectView } from "../views.ts";

/** The projects that a key may belong to; undefined while they are not known or not asked for. */
export function useProjectChoice(wanted: boolean): readonly ProjectView[] | undefined {
	const account = useAccount();
	const may = useMay();
	const isAsked = wanted && may("projects.see");
	const { data } = useResource(isAsked ? `project-choice ${account.id}` : null, () => api.projects(account.id));
	return data?.items.filter(({ state }) => state === "active");
}
