# SPDX-License-Identifier: Apache-2.0
"""The arguments of MPI procedures, by the names and in the order of the standard's C bindings."""

from __future__ import annotations

from fuzz.model import COLLECTIVE_FORMS, RMA, SEND_FORMS

_SEND = "buf count datatype dest tag comm"
_RECV = "buf count datatype source tag comm"
_ONE = "sendbuf sendcount sendtype recvbuf recvcount recvtype"
_REDUCE = "sendbuf recvbuf count datatype op"
_RMA = "origin_addr origin_count origin_datatype target_rank target_disp target_count target_datatype"
_FETCH = "origin_addr origin_count origin_datatype result_addr result_count result_datatype target_rank target_disp target_count target_datatype"

COLLECTIVE_PARAMETERS = {
    "Barrier": "comm",
    "Bcast": "buf count datatype root comm",
    "Gather": _ONE + " root comm",
    "Gatherv": "sendbuf sendcount sendtype recvbuf recvcounts displs recvtype root comm",
    "Scatter": _ONE + " root comm",
    "Scatterv": "sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm",
    "Reduce": _REDUCE + " root comm",
    "Allreduce": _REDUCE + " comm",
    "Scan": _REDUCE + " comm",
    "Exscan": _REDUCE + " comm",
    "Reduce_scatter": "sendbuf recvbuf recvcounts datatype op comm",
    "Reduce_scatter_block": "sendbuf recvbuf recvcount datatype op comm",
    "Allgather": _ONE + " comm",
    "Allgatherv": "sendbuf sendcount sendtype recvbuf recvcounts displs recvtype comm",
    "Alltoall": _ONE + " comm",
    "Alltoallv": "sendbuf sendcounts sdispls sendtype recvbuf recvcounts rdispls recvtype comm",
    "Alltoallw": "sendbuf sendcounts sdispls sendtypes recvbuf recvcounts rdispls recvtypes comm",
}
COLLECTIVE_PARAMETERS.update(
    {
        "Neighbor_" + name.lower(): p
        for name, p in COLLECTIVE_PARAMETERS.items()
        if name.startswith(("Allg", "Allt"))
    }
)

PARAMETERS = {
    "Recv": _RECV + " status",
    "Irecv": _RECV + " request",
    "Recv_init": _RECV + " request",
    "Mrecv": "buf count datatype message status",
    "Imrecv": "buf count datatype message request",
    "Sendrecv": "sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm status",
    "Isendrecv": "sendbuf sendcount sendtype dest sendtag recvbuf recvcount recvtype source recvtag comm request",
    "Sendrecv_replace": "buf count datatype dest sendtag source recvtag comm status",
    "Isendrecv_replace": "buf count datatype dest sendtag source recvtag comm request",
    "Psend_init": "buf partitions count datatype dest tag comm info request",
    "Precv_init": "buf partitions count datatype source tag comm info request",
    "Probe": "source tag comm status",
    "Mprobe": "source tag comm message status",
    "Wait": "request status",
    "Start": "request",
    "Put": _RMA + " win",
    "Get": _RMA + " win",
    "Accumulate": _RMA + " op win",
    "Get_accumulate": _FETCH + " op win",
    "Rput": _RMA + " win request",
    "Rget": _RMA + " win request",
    "Raccumulate": _RMA + " op win request",
    "Rget_accumulate": _FETCH + " op win request",
    "Fetch_and_op": "origin_addr result_addr datatype target_rank target_disp op win",
    "Compare_and_swap": "origin_addr compare_addr result_addr datatype target_rank target_disp win",
}
for _name in ("Send", "Bsend", "Ssend", "Rsend"):
    PARAMETERS[_name] = _SEND
    PARAMETERS[f"I{_name.lower()}"] = PARAMETERS[_name + "_init"] = _SEND + " request"
for _name, _parameters in COLLECTIVE_PARAMETERS.items():
    PARAMETERS[_name] = _parameters
    PARAMETERS[f"I{_name[0].lower()}{_name[1:]}"] = _parameters + " request"
    PARAMETERS[_name + "_init"] = _parameters + " info request"
for _kind in ("read", "write"):
    for _at, _offset in (("", ""), ("_at", "offset ")):
        for _all in ("", "_all"):
            PARAMETERS[f"File_{_kind}{_at}{_all}"] = f"fh {_offset}buf count datatype status"
            PARAMETERS[f"File_i{_kind}{_at}{_all}"] = f"fh {_offset}buf count datatype request"
        PARAMETERS[f"File_{_kind}{_at}_all_begin"] = f"fh {_offset}buf count datatype"
        PARAMETERS[f"File_{_kind}{_at}_all_end"] = "fh buf status"
    PARAMETERS[f"File_{_kind}_shared"] = PARAMETERS[f"File_{_kind}_ordered"] = "fh buf count datatype status"
    PARAMETERS[f"File_i{_kind}_shared"] = "fh buf count datatype request"
    PARAMETERS[f"File_{_kind}_ordered_begin"] = "fh buf count datatype"
    PARAMETERS[f"File_{_kind}_ordered_end"] = "fh buf status"

LARGE = {
    *(
        "Recv",
        "Irecv",
        "Recv_init",
        "Mrecv",
        "Imrecv",
        "Sendrecv",
        "Isendrecv",
        "Sendrecv_replace",
        "Isendrecv_replace",
    ),
    *(name for name in {**SEND_FORMS, **COLLECTIVE_FORMS} if "arrier" not in name),
    *(RMA - {"Fetch_and_op", "Compare_and_swap"}),
    *(name for name in PARAMETERS if name.startswith("File_") and not name.endswith("_end")),
}
"""Procedures that have a large-count form in MPI 4.0."""
