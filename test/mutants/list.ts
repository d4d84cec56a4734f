import { placed } from "./mutant.ts";
import { capMutants } from "./of-caps.ts";
import { clusterMutants } from "./of-cluster.ts";
import { functionMutants } from "./of-functions.ts";
import { journalMutants } from "./of-journal.ts";
import { ledgerMutants } from "./of-ledger.ts";
import { limitMutants } from "./of-limits.ts";
import { replicaMutants } from "./of-replicas.ts";
import { requestMutants } from "./of-requests.ts";
import { sliceMutants } from "./of-slices.ts";
import { upstreamMutants } from "./of-upstream.ts";

/** All mutants of the production source, by file. */
export const mutants = placed([
	...clusterMutants,
	...sliceMutants,
	...ledgerMutants,
	...journalMutants,
	...functionMutants,
	...requestMutants,
	...limitMutants,
	...capMutants,
	...replicaMutants,
	...upstreamMutants,
]);
